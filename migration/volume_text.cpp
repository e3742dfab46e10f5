#include "migration/volume_text.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/config/values.hpp"

namespace spark::host {
namespace {

using config::yaml_word;

bool is_negative(const std::string& value) {
  return value.starts_with('-');
}

// nvme-cli's setting as the configuration's line; empty: there is none for it.
std::string setting_yaml(const std::string& name, const std::string& value) {
  if (name == "nr-io-queues") return "    io_queues: " + yaml_word(value) + "\n";
  if (name == "keep-alive-tmo") return "    keep_alive: " + yaml_word(value + "s") + "\n";
  if (name == "reconnect-delay") return "    reconnect_delay: " + yaml_word(value + "s") + "\n";
  if (name == "ctrl-loss-tmo")
    return "    controller_loss: " + yaml_word(is_negative(value) ? "never" : value + "s") + "\n";
  if (name == "fast-io-fail-tmo") return "    fast_fail: " + yaml_word(value + "s") + "\n";
  return {};
}

// Protection is kept: a volume without its keys in these files is refused, not connected without them.
// Another target may have other keys, so each names files of its own.
std::string protection_yaml(const std::string& target, const std::map<std::string, std::string>& settings) {
  const std::string folder = "/etc/spark-stage/keys/";
  const std::string own = target.starts_with("target-") ? target.substr(std::string("target").size()) : "";
  const bool host = settings.contains("dhchap-secret"), controller = settings.contains("dhchap-ctrl-secret");
  std::string yaml;
  if (host || controller)
    yaml += "    # It authenticates with a key, which belongs in a file that only root can read.\n";
  if (host && controller) {
    yaml += "    auth: {host_key_file: " + folder + "host" + own + ", controller_key_file: " + folder +
            "ctrl" + own + "}\n";
  } else if (host || controller) {
    yaml += "    auth: {host_key_file: " + folder + "host" + own + "}\n";
  }
  if (settings.contains("tls") || settings.contains("concat")) {
    yaml += "    tls: {psk_file: " + folder + "psk" + own + "}   # it was encrypted\n";
  }
  return yaml;
}

// Written by lines of their own, or kept elsewhere, or a key that must not be shown.
bool is_said_elsewhere(const std::string& name) {
  constexpr std::array kNames = {
      "hdr-digest", "data-digest",        "hostnqn",          "hostid",  "dhchap-secret",     "tls", "concat",
      "tls-key",    "dhchap-ctrl-secret", "tls-key-identity", "keyring", "tls-configured-key"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

void add_digests(const ManualConnection& settings, std::vector<std::string>& details) {
  const bool header = settings.settings.contains("hdr-digest"),
             data = settings.settings.contains("data-digest");
  if (header || data) {
    details.push_back(std::string("    digests: {header: ") + (header ? "true" : "false") +
                      ", data: " + (data ? "true" : "false") + "}\n");
  }
}

std::vector<std::string> details_of(const ManualConnection& settings) {
  std::vector<std::string> details;
  if (!settings.interface.empty())
    details.push_back("    interface: " + yaml_word(printable(settings.interface)) + "\n");
  for (const auto& [name, value] : settings.settings) {
    // The kernel's word for "off", which is the configuration's default.
    const bool is_off = name == "fast-io-fail-tmo" && is_negative(value);
    if (is_off || is_said_elsewhere(name)) continue;
    const std::string line = setting_yaml(name, printable(value));
    const std::string shown = printable(name) + (value.empty() ? "" : " " + printable(value));
    details.push_back(line.empty() ? "    # left out, there is no such setting: --" + shown + "\n" : line);
  }
  for (const std::string& word : settings.unknown)
    details.push_back("    # left out, not understood: " + printable(word) + "\n");
  add_digests(settings, details);
  return details;
}

// Options that the daemon sets itself, or that have no effect.
bool goes_without_saying(std::string_view option) {
  constexpr std::array kNames = {"defaults",   "auto", "rw",    "ro",   "_netdev", "nofail", "noload",
                                 "norecovery", "bg",   "async", "exec", "nouser",  "remount"};
  for (const char* name : kNames) {
    if (option == name) return true;
  }
  return option.empty() || option.starts_with("x-systemd.");
}

// What an option did that the daemon does not do; empty: nothing.
std::string remark_on(std::string_view option) {
  if (option == "noauto") return "a volume is always mounted";
  for (const char* order : {"x-systemd.before=", "x-systemd.required-by=", "x-systemd.wanted-by="}) {
    if (option.starts_with(order))
      return "let that unit wait with `Requires=spark-staged.service` and `After=spark-staged.service`";
  }
  return {};
}

std::vector<std::string> options_of(const MountByHand& mount, config::Access access, bool is_nfs) {
  std::vector<std::string> kept, details;
  for (const std::string& option : split(mount.options, ',')) {
    if (const std::string remark = remark_on(option); !remark.empty()) {
      details.push_back("    # left out: " + printable(option) + " - " + remark + "\n");
      continue;
    }
    if (goes_without_saying(option)) continue;
    const auto taken = config::parse_mount_option(option, access, is_nfs);
    if (taken) {
      kept.push_back(yaml_word(*taken));
    } else {
      details.push_back("    # left out: " + printable(taken.error().what) + "\n");
    }
  }
  if (!kept.empty()) details.insert(details.begin(), "    options: [" + join(kept, ", ") + "]\n");
  return details;
}

}  // namespace

Entry target_entry(const TargetDraft& target) {
  std::string yaml = "  " + target.name + ":   # any name; from " + target.origin + "\n";
  if (target.portals.size() == 1) {
    yaml += "    address: " + yaml_word(printable(target.portals.front().address)) +
            "\n    port: " + std::to_string(target.portals.front().port) + "\n";
  } else {
    std::vector<std::string> all;
    for (const nvmetcp::Portal& portal : target.portals) all.push_back(yaml_word(to_string(portal)));
    yaml += "    portals: [" + join(all, ", ") + "]\n";
  }
  Entry entry{target.name, yaml + protection_yaml(target.name, target.settings.settings),
              details_of(target.settings)};
  for (const std::string& remark : target.remarks)
    entry.details.push_back("    # left out: " + printable(remark) + "\n");
  return entry;
}

Entry nvme_volume_entry(const std::string& name, const std::string& target, const FabricDevice& device,
                        const MountByHand& mount) {
  std::string yaml = "  " + name + ":   # from " + mount.origin + "\n    target: " + target +
                     "\n    subsystem: " + yaml_word(printable(device.subsystem)) +
                     "\n    namespace: " + std::to_string(device.nsid) + "\n";
  const bool has_type = !mount.type.empty() && mount.type != "auto";
  if (!device.filesystem_uuid.empty() && has_type) {
    yaml += "    filesystem: {type: " + yaml_word(printable(mount.type)) +
            ", uuid: " + yaml_word(printable(device.filesystem_uuid)) + "}\n";
  } else if (has_type) {
    yaml += "    filesystem: {type: " + yaml_word(printable(mount.type)) + "}\n";
  }
  yaml += "    mount: " + yaml_word(printable(mount.mount)) + "\n    access: read-only\n";
  if (!mounts::has_option(mount.options, "ro")) {
    yaml +=
        "    # It was mounted read-write. If this host alone mounts it, and writes: access: exclusive.\n"
        "    # Two hosts that mount it read-write damage it.\n";
  }
  return {name, yaml, options_of(mount, config::Access::ReadOnly, false)};
}

Entry nfs_volume_entry(const std::string& name, const std::string& source, const MountByHand& mount) {
  const bool reads = mounts::has_option(mount.options, "ro");
  const auto access = reads ? config::Access::ReadOnly : config::Access::Exclusive;
  const std::string yaml =
      "  " + name + ":   # from " + mount.origin + "\n    nfs: " + yaml_word(printable(source)) +
      "\n    mount: " + yaml_word(printable(mount.mount)) + "\n    access: " +
      (reads ? "read-only\n" : "exclusive   # read-write as before; an NFS server takes many writers\n");
  return {name, yaml, options_of(mount, access, true)};
}

std::string commented(const Entry& entry, const std::string& reason) {
  std::string text = "  # Not taken over: " + reason + "\n";
  for (const std::string& line : split(entry.yaml + join(entry.details, ""), '\n')) {
    if (!trim(line).empty()) text += "  # " + line.substr(std::min<std::size_t>(2, line.size())) + "\n";
  }
  return text;
}

std::string left_out(const std::string& detail, const std::string& reason) {
  return "    # left out: " + std::string(trim(detail)) + " - " + reason + "\n";
}

}  // namespace spark::host
