// A connection as nvme-cli's options describe it: on a command line, in discovery.conf or in a unit.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace spark::host {

struct ManualConnection {
  std::string transport;  // "tcp"
  std::string subsystem;  // the NQN; empty where everything that is offered is connected
  std::string address, port;
  std::string interface;                        // host_iface
  std::map<std::string, std::string> settings;  // by nvme-cli's long name without dashes; "" for a flag
  std::vector<std::string> unknown;             // words that were not understood, without keys
};

// The words behind `nvme connect`, `nvme connect-all` or `nvme discover`.
ManualConnection parse_connect_options(const std::vector<std::string>& words);

// Takes one setting by nvme-cli's long name ("ctrl-loss-tmo"); false: no such name.
bool take_setting(ManualConnection& connection, const std::string& name, const std::string& text);

// A word of a setup for a message, without a key that stands in it.
std::string without_key(const std::string& word);

}  // namespace spark::host
