#include "migration/import.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "migration/volume_text.hpp"
#include "migration/words.hpp"

namespace spark::host {
namespace {

// A connection that was found, and where.
struct Found {
  ManualConnection connection;
  std::string origin;
};

std::vector<Found> connections_of(const Survey& survey) {
  std::vector<Found> found;
  for (const ConnectUnit& unit : survey.units) {
    for (const ManualConnection& connection : unit.connections)
      found.push_back({connection, printable(unit.file)});
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
      found.push_back({connection, "the running connection " + path.name});
    }
  }
  return found;
}

nvmetcp::Portal portal_of(const ManualConnection& connection) {
  nvmetcp::Portal portal{connection.address, 4420};
  std::from_chars(connection.port.data(), connection.port.data() + connection.port.size(), portal.port);
  return portal;
}

// One after the other: each entry is taken over if the configuration still parses with it.
class Writer {
 public:
  Writer(const SystemRoot& root, const Survey& survey) : root_(root), survey_(survey) {}

  Imported write(WallTime now) {
    draft_targets();
    for (const TargetDraft& target : targets_) take(target_entry(target), targets_yaml_, imported_.targets);
    for (const FstabLine& line : survey_.fstab) take_line(line);
    for (const FabricDevice& device : survey_.devices) take_mounts_of(device);
    for (const Found& found : found_) take_unmounted(found);
    imported_.yaml = head(now) + body() + steps();
    return std::move(imported_);
  }

 private:
  // A target is the set of portals that lead to the same subsystem.
  void draft_targets() {
    found_ = connections_of(survey_);
    std::map<std::string, TargetDraft> of_subsystem;
    std::vector<std::string> order;
    for (const Found& found : found_) {
      const ManualConnection& connection = found.connection;
      const bool is_tcp = connection.transport.empty() || connection.transport == "tcp";
      if (connection.address.empty() || !is_tcp) {
        foreign_.push_back(found);
        continue;
      }
      TargetDraft& draft = of_subsystem[connection.subsystem];
      if (draft.portals.empty()) {
        draft.settings = connection;
        draft.origin = found.origin;
        order.push_back(connection.subsystem);
      }
      const nvmetcp::Portal portal = portal_of(connection);
      if (std::find(draft.portals.begin(), draft.portals.end(), portal) == draft.portals.end()) {
        draft.portals.push_back(portal);
      }
    }
    for (const std::string& subsystem : order) name_target(subsystem, of_subsystem[subsystem]);
  }

  void name_target(const std::string& subsystem, TargetDraft draft) {
    // An address to be discovered says nothing new where a connection to it is known.
    const auto same = std::find_if(targets_.begin(), targets_.end(), [&](const TargetDraft& known) {
      return known.portals == draft.portals &&
             (subsystem.empty() || known.settings.interface == draft.settings.interface);
    });
    if (same != targets_.end()) {
      target_of_[subsystem] = same->name;
      return;
    }
    draft.name = targets_.empty() ? "target" : "target-" + std::to_string(targets_.size() + 1);
    target_of_[subsystem] = draft.name;
    targets_.push_back(std::move(draft));
  }

  void take(const Entry& entry, std::string& section, unsigned& count) {
    const std::string before = section;
    section += entry.yaml;
    const auto parsed = config::parse(body(), "import");
    if (parsed) {
      ++count;
      return;
    }
    // "import:7:12: sentence", the first of them
    const std::string sentence = split(parsed.error().what, '\n').front();
    const std::size_t colon = sentence.find(": ");
    section =
        before + commented(entry.yaml, colon == std::string::npos ? sentence : sentence.substr(colon + 2));
    ++imported_.left_out;
  }

  void leave_out(const std::string& line, const std::string& reason) {
    volumes_yaml_ += commented("  " + printable(line) + "\n", reason);
    ++imported_.left_out;
  }

  std::string name_of(const std::string& mount) {
    return name_for(std::filesystem::path(mount).filename().native(), names_);
  }

  void take_line(const FstabLine& line) {
    const MountByHand mount{line.mount, line.type, line.options,
                            "line " + std::to_string(line.number) + " of /etc/fstab"};
    if (line.is_nfs()) {
      take(nfs_volume_entry(name_of(line.mount), line.source, mount), volumes_yaml_, imported_.volumes);
      lines_.push_back(std::to_string(line.number));
      return;
    }
    if (const FabricDevice* device = find_device(root_, survey_.devices, line.source)) {
      take_volume(*device, mount);
      lines_.push_back(std::to_string(line.number));
      return;
    }
    const bool is_device = line.source.starts_with("/dev/") || line.source.starts_with("UUID=") ||
                           line.source.starts_with("LABEL=");
    const bool is_remote = is_device && mounts::has_option(line.options, "_netdev");
    if (is_remote || (is_kernel_name(line.source) && !is_local(line.source))) {
      leave_out(line.source + " " + line.mount + " " + line.type + " " + line.options,
                "line " + std::to_string(line.number) + " of /etc/fstab: " + printable(line.source) +
                    " is not a whole namespace that is connected over TCP now; connect it and import again");
    }
  }

  // A drive of this host: its driver is PCIe, or it is no NVMe at all.
  bool is_local(const std::string& source) const {
    const std::string name = source.substr(source.find_last_of('/') + 1);
    std::error_code error;
    return std::filesystem::exists(root_ / ("sys/class/block/" + name), error);
  }

  void take_volume(const FabricDevice& device, const MountByHand& mount) {
    taken_.insert(device.subsystem);
    mounted_.insert(mount.mount);
    take(nvme_volume_entry(name_of(mount.mount), target_of_[device.subsystem], device, mount), volumes_yaml_,
         imported_.volumes);
  }

  void take_mounts_of(const FabricDevice& device) {
    for (const mounts::Mount& mount : survey_.mounts) {
      if (mount.source != "/dev/" + device.device || mounted_.contains(mount.target.native())) continue;
      take_volume(device, {mount.target.native(), mount.type, mounts::is_read_only(mount) ? "ro" : "rw",
                           "the running mount of " + mount.source});
    }
  }

  void take_unmounted(const Found& found) {
    const std::string& subsystem = found.connection.subsystem;
    if (subsystem.empty() || !taken_.insert(subsystem).second || !target_of_.contains(subsystem)) return;
    const Entry entry =
        nvme_volume_entry(name_for(subsystem, names_), target_of_[subsystem], {"", subsystem, 1, {}, ""},
                          {"/mnt/" + name_for(subsystem, folders_), "", "ro", found.origin});
    volumes_yaml_ += commented(entry.yaml, "it is connected, but nothing says where it is mounted");
    ++imported_.left_out;
  }

  std::string body() const {
    return "version: 1\n" + section("targets", targets_yaml_) + section("volumes", volumes_yaml_);
  }

  // A section of comments alone would be no map.
  static std::string section(const std::string& name, const std::string& yaml) {
    return name + (has_entry(yaml) ? ":\n" : ": {}\n") + yaml;
  }

  static bool has_entry(const std::string& yaml) {
    const auto lines = split(yaml, '\n');
    return std::any_of(lines.begin(), lines.end(),
                       [](const auto& line) { return !trim(line).empty() && !trim(line).starts_with('#'); });
  }

  std::string head(WallTime now) const {
    std::string text = "# Made by `spark-stage import` at " + rfc3339(now) +
                       "\n# from /etc/fstab, units that connect, /etc/nvme/config.json,\n"
                       "# /etc/nvme/discovery.conf and the current connections and mounts.\n"
                       "# Check it; every key: spark-stage.yaml(5).\n";
    for (const std::string& sentence : survey_.unread) text += "# Not read: " + printable(sentence) + "\n";
    for (const Found& found : foreign_) {
      const auto& connection = found.connection;
      text += "# Not taken over from " + printable(found.origin) + ": a connection " +
              (connection.address.empty()
                   ? "without an address"
                   : "over " + printable(connection.transport) + " to " + printable(connection.address)) +
              "\n";
    }
    return text;
  }

  // Commands alone, each a line. The order keeps mounted volumes intact: nothing is disconnected, and nothing
  // mounted twice.
  std::string steps() const {
    std::string text =
        "# To move, with the jobs that use these volumes stopped:\n#   spark-stage config check\n";
    for (const std::string& mount : mounted_) text += "#   umount " + printable(mount) + "\n";
    if (!lines_.empty()) text += "#   sed -i '" + join(lines_, "s/^/#/; ") + "s/^/#/' /etc/fstab\n";
    for (const ConnectUnit& unit : survey_.units) {
      text += "#   systemctl disable " + printable(unit.name) + " && mv " + printable(unit.file) +
              " /root/\n#     (do not stop it: stopping disconnects)\n";
    }
    return text +
           "#   systemctl daemon-reload && systemctl enable --now spark-staged\n#   spark-stage status\n";
  }

  const SystemRoot& root_;
  const Survey& survey_;
  Imported imported_;
  std::vector<Found> found_, foreign_;
  std::vector<TargetDraft> targets_;
  std::map<std::string, std::string> target_of_;  // by subsystem
  std::set<std::string> names_, folders_, taken_, mounted_;
  std::vector<std::string> lines_;  // of fstab, that volumes replace
  std::string targets_yaml_, volumes_yaml_;
};

}  // namespace

Imported import_configuration(const SystemRoot& root, const Survey& survey, WallTime now) {
  return Writer(root, survey).write(now);
}

}  // namespace spark::host
