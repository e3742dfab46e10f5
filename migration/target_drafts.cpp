#include "migration/target_drafts.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <tuple>

#include "base/number.hpp"
#include "base/text.hpp"
#include "daemon/config/values.hpp"

namespace spark::host {
namespace {

constexpr std::uint16_t kDefaultPort = 4420, kDiscoveryPort = 8009;  // IANA's nvme and nvme-disc
constexpr std::array kProtection = {"dhchap-secret", "dhchap-ctrl-secret", "tls", "concat"};
// What else one target has for all its subsystems. The kernel shows none of it.
constexpr std::array kShared = {"hdr-digest",      "data-digest",   "nr-io-queues",    "keep-alive-tmo",
                                "reconnect-delay", "ctrl-loss-tmo", "fast-io-fail-tmo"};

// Whether it authenticates and encrypts, by the kernel's attributes. Keys are compared, never shown.
std::map<std::string, std::string> running_protection(const SystemRoot& root, const std::string& name) {
  std::map<std::string, std::string> settings;
  const auto take = [&](const char* attribute, const char* setting) {
    const auto text = read_line_file(root / "sys/class/nvme" / name / attribute);
    if (text && !text->empty() && *text != "none") settings[setting] = *text;
  };
  take("dhchap_secret", "dhchap-secret");
  take("dhchap_ctrl_secret", "dhchap-ctrl-secret");
  take("tls_key", "tls");
  if (settings.contains("tls")) settings["tls"] = "";  // the number of a key in the kernel's keyring
  return settings;
}

std::vector<Found> connections_of(const SystemRoot& root, const Survey& survey) {
  std::vector<Found> found;
  for (const ConnectUnit& unit : survey.units) {
    for (const ManualConnection& connection : unit.connections)
      found.push_back({connection, printable(unit.file)});
    for (const ManualConnection& connection : unit.discovered) {
      if (!connection.address.empty()) found.push_back({connection, printable(unit.file)});
    }
  }
  for (const auto& connection : survey.config_json) found.push_back({connection, "/etc/nvme/config.json"});
  for (const auto& connection : survey.discovery_conf) {
    found.push_back({connection, "/etc/nvme/discovery.conf"});
  }
  for (const FabricDevice& device : survey.devices) {
    for (const nvmetcp::Controller& path : device.paths) {
      ManualConnection connection;
      connection.transport = "tcp";
      connection.subsystem = device.subsystem;
      connection.address = path.portal.address;
      connection.port = std::to_string(path.portal.port);
      connection.interface = path.interface;
      connection.settings = running_protection(root, path.name);
      if (!path.host_nqn.empty() && !survey.host_nqn.empty()) connection.settings["hostnqn"] = path.host_nqn;
      found.push_back({connection, "the running connection " + path.name, true});
    }
  }
  return found;
}

// The port as a number; nothing if it is none.
std::optional<std::uint16_t> port_of(const ManualConnection& connection) {
  const std::string& text = connection.port;
  if (text.empty()) return kDefaultPort;
  const auto port = parse_number<std::uint16_t>(text);
  return port == 0 ? std::nullopt : port;
}

std::string setting(const ManualConnection& connection, const char* name) {
  const auto found = connection.settings.find(name);
  return found == connection.settings.end() ? "" : found->second;
}

// spark-staged connects every target as the host of /etc/nvme.
std::string other_identity(const ManualConnection& connection, const Survey& survey) {
  for (const auto& [name, own, file] : {std::tuple("hostnqn", survey.host_nqn, "/etc/nvme/hostnqn"),
                                        std::tuple("hostid", lower(survey.host_id), "/etc/nvme/hostid")}) {
    const std::string used = setting(connection, name);
    const bool is_clear = !used.empty() && used.find_first_of("$%`") == std::string::npos;
    if (is_clear && (name == std::string_view("hostid") ? lower(used) : used) != own)
      return "it connects as host " + printable(used) + ", and spark-staged as the one in " + file + ", " +
             (own.empty() ? "which is missing" : printable(own)) +
             ": the target may refuse that one. Write the host that the target allows into this file, then "
             "import again";
  }
  return {};
}

std::string reason_against(const Found& found, const Survey& survey) {
  const ManualConnection& connection = found.connection;
  const std::string to = printable(connection.address);
  if (connection.address.empty()) return "a connection without an address";
  if (!connection.transport.empty() && connection.transport != "tcp")
    return "a connection over " + printable(connection.transport) + " to " + to;
  const bool is_discovery = connection.subsystem == nvmetcp::kDiscoveryNqn ||
                            connection.settings.contains("discovery") ||
                            (connection.subsystem.empty() && port_of(connection) == kDiscoveryPort);
  if (is_discovery)
    return to + " is a discovery service, no volume: `spark-stage discover " + to + "` shows what it offers";
  return other_identity(connection, survey);
}

bool is_name(const nvmetcp::Portal& portal) {
  return portal.address.find(':') == std::string::npos &&
         portal.address.find_first_not_of("0123456789.") != std::string::npos;
}

void add_missing(const std::vector<std::string>& more, std::vector<std::string>& all) {
  for (const std::string& one : more) {
    if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
  }
}

// All that is known of one subsystem, or of one address to be discovered.
struct Paths {
  std::vector<Found> found;
  std::vector<nvmetcp::Portal> written, running;

  void add(const Found& one, TargetDraft& draft) {
    if (found.empty()) {
      draft.settings = one.connection;
      draft.origin = one.origin;
    }
    for (const auto& [name, value] : one.connection.settings) {
      const auto [kept, is_new] = draft.settings.settings.emplace(name, value);
      const bool is_secret = std::find(kProtection.begin(), kProtection.end(), name) != kProtection.end();
      if (!is_new && !one.is_running && kept->second != value && !is_secret && !name.starts_with("tls-"))
        draft.remarks.push_back("--" + name + " " + value +
                                " of another path: a target has one such setting");
    }
    add_missing(one.connection.unknown, draft.settings.unknown);
    found.push_back(one);
    const auto port = port_of(one.connection);
    const auto address = config::parse_address(one.connection.address);
    if (!port || !address) {
      draft.remarks.push_back(address ? "port " + printable(one.connection.port) + " is no port"
                                      : address.error().what);
      return;
    }
    auto& portals = one.is_running ? running : written;
    const nvmetcp::Portal portal{*address, *port};
    if (std::find(portals.begin(), portals.end(), portal) == portals.end()) portals.push_back(portal);
  }

  // The interface of one path is no setting for all of them.
  void settle_interface(TargetDraft& draft) const {
    for (const bool is_running : {false, true}) {
      std::set<std::string> interfaces;
      for (const Found& one : found) {
        if (one.is_running == is_running) interfaces.insert(one.connection.interface);
      }
      if (interfaces.size() < 2) continue;
      draft.settings.interface.clear();
      interfaces.erase("");
      draft.remarks.push_back(
          "its paths use several interfaces (" +
          join(std::vector<std::string>(interfaces.begin(), interfaces.end()), ", ") +
          "), and the routes decide now: `ip route get ADDRESS` shows which one an address takes");
      return;
    }
  }

  // A host name that a file gives and the address of the running connection are one portal.
  std::vector<nvmetcp::Portal> portals(std::vector<std::string>& remarks) const {
    std::vector<nvmetcp::Portal> all = written;
    std::vector<nvmetcp::Portal> others;
    for (const nvmetcp::Portal& portal : running) {
      if (std::find(written.begin(), written.end(), portal) == written.end()) others.push_back(portal);
    }
    const auto names = static_cast<std::size_t>(std::count_if(written.begin(), written.end(), is_name));
    if (!others.empty() && others.size() <= names) return all;
    if (names > 0 && !others.empty()) {
      for (const nvmetcp::Portal& portal : written) {
        if (is_name(portal))
          remarks.push_back(portal.address + " leads to one of the addresses of the running connections");
      }
      std::erase_if(all, is_name);
    }
    all.insert(all.end(), others.begin(), others.end());
    return all;
  }
};

// A key that is not known is that of the others.
bool is_protected_alike(const ManualConnection& one, const ManualConnection& other) {
  return std::all_of(kProtection.begin(), kProtection.end(), [&](const char* name) {
    const std::string key = setting(one, name), other_key = setting(other, name);
    const bool is_same = key.empty() || other_key.empty() || key == other_key;
    return one.settings.contains(name) == other.settings.contains(name) && is_same;
  });
}

bool has_same_settings(const ManualConnection& one, const ManualConnection& other) {
  return std::all_of(kShared.begin(), kShared.end(), [&](const char* name) {
    const bool has = one.settings.contains(name);
    return has == other.settings.contains(name) && setting(one, name) == setting(other, name);
  });
}

// `is_running`: no file says more about it.
void name_target(const std::string& subsystem, TargetDraft draft, bool is_running, TargetDrafts& drafts) {
  // An address to be discovered says nothing new where a connection to it is known.
  const auto same = std::find_if(drafts.targets.begin(), drafts.targets.end(), [&](const TargetDraft& known) {
    return known.portals == draft.portals && is_protected_alike(known.settings, draft.settings) &&
           (is_running || has_same_settings(known.settings, draft.settings)) &&
           (subsystem.empty() || known.settings.interface == draft.settings.interface);
  });
  if (same != drafts.targets.end()) {
    same->settings.settings.merge(draft.settings.settings);  // also those that have no equivalent
    add_missing(draft.settings.unknown, same->settings.unknown);
    add_missing(draft.remarks, same->remarks);
    if (!subsystem.empty()) drafts.of_subsystem[subsystem] = same->name;
    return;
  }
  const std::size_t number = drafts.targets.size() + 1;
  draft.name = number == 1 ? "target" : "target-" + std::to_string(number);
  if (!subsystem.empty()) drafts.of_subsystem[subsystem] = draft.name;
  drafts.targets.push_back(std::move(draft));
}

}  // namespace

TargetDrafts draft_targets(const SystemRoot& root, const Survey& survey) {
  TargetDrafts drafts;
  drafts.found = connections_of(root, survey);
  struct Draft {
    std::string subsystem;
    Paths paths;
    TargetDraft target;
  };
  std::vector<Draft> all;
  std::set<std::string> refused;  // subsystems whose connections have a protection that can't be kept
  for (const Found& found : drafts.found) {
    const std::string& subsystem = found.connection.subsystem;
    if (std::string reason = reason_against(found, survey); !reason.empty()) {
      if (!subsystem.empty() && !other_identity(found.connection, survey).empty()) refused.insert(subsystem);
      drafts.left_out.push_back({found, std::move(reason)});
      continue;
    }
    const auto is_same = [&](const Draft& draft) {
      if (!subsystem.empty() || !draft.subsystem.empty()) return draft.subsystem == subsystem;
      const ManualConnection& other = draft.paths.found.front().connection;
      return other.address == found.connection.address && other.port == found.connection.port;
    };
    auto at = std::find_if(all.begin(), all.end(), is_same);
    if (at == all.end()) at = all.insert(all.end(), Draft{subsystem, {}, {}});
    at->paths.add(found, at->target);
  }
  for (Draft& draft : all) {
    if (refused.contains(draft.subsystem)) continue;
    draft.target.portals = draft.paths.portals(draft.target.remarks);
    draft.paths.settle_interface(draft.target);
    if (draft.target.portals.empty()) {
      drafts.left_out.push_back({draft.paths.found.front(), draft.target.remarks.front()});
      continue;
    }
    const bool is_running = draft.paths.found.front().is_running;
    name_target(draft.subsystem, std::move(draft.target), is_running, drafts);
  }
  return drafts;
}

}  // namespace spark::host
