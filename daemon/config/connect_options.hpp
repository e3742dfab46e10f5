// The options of a target's connections, with their keys in the file.
#pragma once

#include "daemon/config/values.hpp"

namespace spark::config {

// The only list of the options, in the order of `config show`. The parser and `config show` visit it, and a
// reload compares the output of `config show`: an option missing here can't be set, and a change of it is
// missed.
template <class Options, class Visitor>
void for_each_option(Options& options, const Visitor& visit) {
  visit("interface", options.interface, parse_interface);
  visit("io_queues", options.io_queues);
  visit("keep_alive", options.keep_alive);
  visit("reconnect_delay", options.reconnect_delay);
  visit("controller_loss", options.controller_loss, "never");
  visit("fast_fail", options.fast_fail, "off");
  visit("io_policy", options.io_policy, {"kernel", "numa", "round-robin", "queue-depth"});
  visit.section("digests", [&](const auto& digests) {
    digests("header", options.header_digest);
    digests("data", options.data_digest);
  });
  visit.section("auth", [&](const auto& auth) {
    auth("host_key_file", options.host_key_file, parse_absolute_path,
         "the host proves itself first, the controller in turn");
    auth("controller_key_file", options.controller_key_file, parse_absolute_path);
  });
  visit.section("tls", [&](const auto& tls) {
    tls("psk_file", options.tls_psk_file, parse_absolute_path,
        "write the file that holds the pre-shared key");
  });
}

}  // namespace spark::config
