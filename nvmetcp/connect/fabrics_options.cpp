#include "nvmetcp/connect/fabrics_options.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "nvmetcp/validate.hpp"

namespace spark::nvmetcp {
namespace {

constexpr unsigned kDiscoveryKeepAliveSeconds = 30;
constexpr unsigned kWatchKeepAliveSeconds = 10;  // a target that went silent is found out by it

FabricsOptions common_options(const std::string& subsystem, const Portal& numeric, const HostIdentity& host,
                              const std::string& interface) {
  FabricsOptions options = {{"nqn", subsystem},          {"transport", "tcp"},
                            {"traddr", numeric.address}, {"trsvcid", std::to_string(numeric.port)},
                            {"hostnqn", host.nqn},       {"hostid", host.id}};
  if (!interface.empty()) options.push_back({"host_iface", interface});
  return options;
}

std::string seconds_text(std::chrono::seconds seconds) {
  return std::to_string(seconds.count());
}

}  // namespace

FabricsOptions io_controller_options(const std::string& subsystem, const Portal& numeric,
                                     const HostIdentity& host, const ConnectOptions& options,
                                     unsigned online_cpus, const Keys& keys) {
  FabricsOptions result = common_options(subsystem, numeric, host, options.interface);
  const unsigned queues = options.io_queues != 0 ? options.io_queues : automatic_io_queues(online_cpus);
  result.push_back({"nr_io_queues", std::to_string(queues)});
  result.push_back({"keep_alive_tmo", seconds_text(options.keep_alive)});
  result.push_back({"reconnect_delay", seconds_text(options.reconnect_delay)});
  const auto never = std::chrono::seconds(-1);
  result.push_back({"ctrl_loss_tmo", seconds_text(options.controller_loss.value_or(never))});
  if (options.fast_fail) result.push_back({"fast_io_fail_tmo", seconds_text(*options.fast_fail)});
  if (options.header_digest) result.push_back({"hdr_digest", ""});
  if (options.data_digest) result.push_back({"data_digest", ""});
  if (!options.tls_psk_file.empty()) result.push_back({"tls", ""});
  if (!options.host_key_file.empty()) result.push_back({"dhchap_secret", keys.host});
  if (!options.controller_key_file.empty()) result.push_back({"dhchap_ctrl_secret", keys.controller});
  return result;
}

FabricsOptions discovery_controller_options(const Portal& numeric, const HostIdentity& host,
                                            const std::string& interface, DiscoveryUse use) {
  const bool is_watch = use == DiscoveryUse::Watch;
  const unsigned keep_alive = is_watch ? kWatchKeepAliveSeconds : kDiscoveryKeepAliveSeconds;
  FabricsOptions result = common_options(kDiscoveryNqn, numeric, host, interface);
  result.push_back({"keep_alive_tmo", std::to_string(keep_alive)});
  result.push_back({"reconnect_delay", is_watch ? "5" : "1"});
  result.push_back({"ctrl_loss_tmo", is_watch ? "-1" : "0"});
  return result;
}

std::string to_string(const FabricsOptions& options) {
  std::vector<std::string> parts;
  for (const FabricsOption& option : options) {
    parts.push_back(option.value.empty() ? option.name : option.name + "=" + option.value);
  }
  return join(parts, ",");
}

Result<> check_supported(const FabricsOptions& asked, const std::string& kernel_list,
                         const std::string& kernel_release) {
  std::vector<std::string> known;
  for (const std::string& entry : split(trim(kernel_list), ',')) known.push_back(split(entry, '=').front());
  std::vector<std::string> missing;
  for (const FabricsOption& option : asked) {
    if (std::find(known.begin(), known.end(), option.name) == known.end()) missing.push_back(option.name);
  }
  if (missing.empty()) return {};
  return fail(Errc::Unsupported,
              "kernel " + kernel_release + " does not know the connection option " + join(missing, ", "),
              "switch it off in the config, or boot a newer kernel");
}

}  // namespace spark::nvmetcp
