#include "migration/import.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "migration/head.hpp"
#include "migration/replaced.hpp"
#include "migration/rivals.hpp"
#include "migration/steps.hpp"
#include "migration/survey/dependent.hpp"
#include "migration/survey/words.hpp"
#include "migration/target_drafts.hpp"
#include "migration/volume_text.hpp"

namespace spark::host {
namespace {

// The first problem's sentence, of "import:7:12: sentence"; empty if it parses.
std::string problem_of(const std::string& yaml) {
  const auto parsed = config::parse(yaml, "import");
  if (parsed) return {};
  const std::string sentence = split(parsed.error().what, '\n').front();
  const std::size_t colon = sentence.find(": ");
  return colon == std::string::npos ? sentence : sentence.substr(colon + 2);
}

std::string address_of(const TargetDraft& target) {
  std::vector<std::string> all;
  for (const nvmetcp::Portal& portal : target.portals) all.push_back(to_string(portal));
  return printable(join(all, ", "));
}

std::string shown_line(const FstabLine& line) {
  return printable(line.source + " " + line.mount + " " + line.type + " " + line.options);
}

bool has_entry(const std::string& yaml) {
  return std::ranges::any_of(split(yaml, '\n'), [](const auto& line) {
    return !trim(line).empty() && !trim(line).starts_with('#');
  });
}

// A section of comments alone would be no map.
std::string section(const std::string& name, const std::string& yaml) {
  return name + (has_entry(yaml) ? ":\n" : ": {}\n") + yaml;
}

// One after the other: each entry, and each of its details, is taken over if the configuration still parses
// with it.
class Writer {
 public:
  Writer(const SystemRoot& root, const Survey& survey)
      : root_(root), survey_(survey), drafts_(draft_targets(root, survey)) {
    auto loaded = config::load(root / std::string_view(config::kDefaultPath).substr(1));
    if (loaded) config_ = std::move(*loaded);
  }

  Imported write(WallTime now) {
    for (const LeftOut& one : drafts_.left_out) leave_out_connection(one);
    for (const TargetDraft& target : drafts_.targets) take_target(target);
    for (const bool is_second : {false, true}) {
      for (const FstabLine& line : survey_.fstab) {
        if (is_second_choice(line) == is_second) take_line(line, {});
      }
    }
    for (const MountUnit& unit : survey_.mount_units) take_line(unit.mount, unit.units);
    for (const FstabLine& line : survey_.fstab) take_dependent(line);
    for (const MountUnit& unit : survey_.mount_units) name_dependent(unit);
    for (const FabricDevice& device : survey_.devices) take_mounts_of(device);
    for (const mounts::Mount& mount : survey_.mounts) name_nfs_mount(mount);
    for (const Found& found : drafts_.found) take_unmounted(found);
    for (const ConnectUnit& unit : survey_.units) take_unit(unit);
    // Of the units that stay.
    for (Item& unit : units_that_need(survey_, imported_.items)) imported_.items.push_back(std::move(unit));
    for (const Use& use : survey_.uses) name_use(use);
    for (const Item& item : imported_.items)
      imported_.left_out += item.is_taken() || !item.ended_by.empty() ? 0 : 1;
    imported_.yaml = head_text(survey_, imported_.items, now) + body() + steps_text(imported_.items, now);
    return std::move(imported_);
  }

 private:
  void leave_out_connection(const LeftOut& one) {
    const ManualConnection& connection = one.found.connection;
    imported_.items.push_back({.what = "a connection",
                               .where = printable(connection.address),
                               .origin = one.found.origin,
                               .reason = one.reason,
                               .subsystem = connection.subsystem});
  }

  void take_target(const TargetDraft& target) {
    // The name of the first target is the word.
    Item item{.what = target.name == "target" ? target.name : "target " + target.name,
              .where = address_of(target),
              .origin = target.origin};
    take(target_entry(target), std::move(item), targets_yaml_, imported_.targets);
    if (imported_.items.back().is_taken()) taken_targets_.insert(target.name);
  }

  void take(const Entry& entry, Item item, std::string& section, unsigned& count) {
    const std::string before = section;
    if (item.reason.empty()) {
      section += entry.yaml;
      item.reason = problem_of(body());
    }
    if (!item.is_taken()) {
      section = before + commented(entry, item.reason);
    } else {
      ++count;
      if (&section == &volumes_yaml_) volumes_[item.where] = entry.name;
      take_details(entry, section);
    }
    imported_.items.push_back(std::move(item));
  }

  // A line of a file, or a mount, that stays as it is.
  void name_only(const std::string& shown, Item item) {
    volumes_yaml_ += commented({.name = "", .yaml = "  " + shown + "\n"}, item.reason);
    imported_.items.push_back(std::move(item));
  }

  // Each is parsed with its entry alone, and that one's target: no other entry has a say in it.
  void take_details(const Entry& entry, std::string& section) const {
    const bool is_volume = &section == &volumes_yaml_;
    std::string own = entry.yaml;
    for (const std::string& detail : entry.details) {
      const std::string with_it = own + detail;
      const std::string problem = trim(detail).starts_with('#') ? ""
                                  : is_volume                   ? problem_of(body(targets_yaml_, with_it))
                                                                : problem_of(body(with_it, ""));
      const std::string text = problem.empty() ? detail : left_out(detail, problem);
      own += text;
      section += text;
    }
  }

  std::string name_of(const std::string& mount) {
    return name_for(std::filesystem::path(mount).filename().native(), names_);
  }

  // What programs reach at that mount point; null: nothing is mounted there.
  const mounts::Mount* mounted_at(const std::string& mount) const {
    const mounts::Mount* found = mounts::mounted_at(survey_.mounts, mount);
    return found == nullptr || found->type == "autofs" ? nullptr : found;
  }

  // Another line of its mount point is mounted at boot in its place.
  bool is_second_choice(const FstabLine& line) const {
    return mounts::has_option(line.options, "noauto") && other_lines_of(line, survey_.fstab).at_boot > 0;
  }

  // The next boot would mount the other line on the volume's mount point.
  void note_other_lines(const FstabLine& line, Item& item) const {
    OtherLines others = other_lines_of(line, survey_.fstab);
    item.other_lines = std::move(others.on_request);
    if (others.at_boot == 0 || volumes_.contains(item.where)) return;
    item.reason = "line " + std::to_string(others.at_boot) +
                  " of /etc/fstab also mounts there: remove one of the two, and import again";
  }

  // `units`: the line is a mount unit's; empty: it is one of fstab.
  void take_line(const FstabLine& line, const std::vector<UnitFile>& units) {
    const std::string origin = units.empty() ? "line " + std::to_string(line.number) + " of /etc/fstab"
                                             : printable(units.front().file);
    const MountByHand mount{line.mount, line.type, line.options, origin};
    const bool is_automount = mounts::has_option(line.options, "x-systemd.automount") || units.size() > 1;
    Item item{.where = printable(line.mount),
              .origin = origin,
              .fstab_line = line.text,
              .automount = is_automount ? automount_unit(line.mount) : "",
              .units = units};
    if (units.empty()) note_other_lines(line, item);
    if (item.is_taken()) item.reason = reason_of_rival(root_, survey_, line);
    if (item.is_taken()) item.reason = reason_of_names(line.source, line.mount);
    const FabricDevice* device = device_of(line);
    if (line.is_nfs()) {
      const mounts::Mount* now = mounted_at(line.mount);
      if (now != nullptr && !now->type.starts_with("nfs")) item.reason = covered(*now);
      const std::string name = name_of(line.mount);
      item.what = "volume " + name;
      seen_mounts_.insert(line.mount);
      take(nfs_volume_entry(name, line.source, mount), std::move(item), volumes_yaml_, imported_.volumes);
    } else if (device != nullptr && is_kernel_name(line.source) && mounted_at(line.mount) == nullptr) {
      item.what = "a line";
      item.reason = origin + ": " + unclear(line);
      item.subsystem = device->subsystem;
      name_only(shown_line(line), std::move(item));
    } else if (device != nullptr) {
      take_volume(*device, mount, std::move(item));
    } else if (std::string reason = reason_to_name(line); !reason.empty()) {
      item.what = "a line";
      item.reason = origin + ": " + printable(line.source) + " " + reason;
      const FabricDevice* below = fabric_below(root_, survey_.devices, line.source);
      item.subsystem = below == nullptr ? "" : below->subsystem;  // the line needs its connection
      name_only(shown_line(line), std::move(item));
    }
  }

  // What is mounted tells which device a name like /dev/nvme1n1 means; by now, another one may have it.
  const FabricDevice* device_of(const FstabLine& line) const {
    const mounts::Mount* now = is_kernel_name(line.source) ? mounted_at(line.mount) : nullptr;
    const bool is_whole = now != nullptr && now->root == "/";
    const FabricDevice* mounted = is_whole ? find_device(root_, survey_.devices, now->source) : nullptr;
    return mounted != nullptr ? mounted : find_device(root_, survey_.devices, line.source);
  }

  // Mounted before spark-staged mounts the volume, it would find the empty folder, or nothing.
  void take_dependent(const FstabLine& line) {
    for (const auto& [mount, name] : volumes_) {
      const std::string need = need_at_boot(line, mount);
      if (need.empty()) continue;
      const auto known = std::ranges::find(imported_.items, line.text, &Item::fstab_line);
      if (known != imported_.items.end()) {  // a volume below another one, say
        known->needs_volume = !known->is_taken();
        continue;
      }
      const std::string origin = "line " + std::to_string(line.number) + " of /etc/fstab";
      Item item{.what = "a line", .where = printable(line.mount), .origin = origin, .fstab_line = line.text};
      item.needs_volume = true;
      item.reason = origin + ": " + need + " volume " + name + ", which is mounted later than fstab: " +
                    (is_bind(line) ? "make " + printable(line.mount) + " a symbolic link to it"
                                   : "give the line `noauto`, and mount it, or use it, once "
                                     "`spark-stage wait " +
                                         name + "` has ended");
      seen_mounts_.insert(line.mount);
      name_only(shown_line(line), std::move(item));
    }
  }

  // The same of a unit that starts at boot.
  void name_dependent(const MountUnit& unit) {
    const FstabLine& line = unit.mount;
    const bool starts =
        std::ranges::any_of(unit.units, [](const UnitFile& file) { return !file.links.empty(); });
    const std::string origin = printable(unit.unit().file);
    const auto known = std::ranges::find(imported_.items, origin, &Item::origin);
    for (const auto& [mount, name] : volumes_) {
      const std::string need = starts ? need_of(line, mount) : "";
      if (need.empty()) continue;
      seen_mounts_.insert(line.mount);
      if (known != imported_.items.end()) {
        known->needs_volume = !known->is_taken();
        return;
      }
      Item item{.what = "a mount unit", .where = printable(line.mount), .origin = origin};
      item.needs_volume = true;
      item.reason = need + " volume " + name +
                    ", which is mounted later than the unit: disable the unit, and " +
                    (is_bind(line) ? "make " + printable(line.mount) + " a symbolic link to it"
                                   : "start it once `spark-stage wait " + name + "` has ended");
      imported_.items.push_back(std::move(item));
      return;
    }
  }

  // Why a line of a block device has no volume although it may concern a target; empty: it concerns none.
  std::string reason_to_name(const FstabLine& line) const {
    if (fabric_below(root_, survey_.devices, line.source) != nullptr)
      return "is a part of a namespace, or made of several devices; a volume is a file system on a whole "
             "namespace";
    const bool is_remote = line.is_block_device() && mounts::has_option(line.options, "_netdev");
    if (is_remote || (is_kernel_name(line.source) && !is_present(root_, line.source)))
      return "is not a whole namespace that is connected over TCP now; connect it and import again";
    return {};
  }

  void take_volume(const FabricDevice& device, const MountByHand& mount, Item item) {
    const std::string name = name_of(mount.mount);
    const auto target = drafts_.of_subsystem.find(device.subsystem);
    const std::string target_name = target == drafts_.of_subsystem.end() ? "target" : target->second;
    if (!taken_targets_.contains(target_name) || target == drafts_.of_subsystem.end())
      item.reason = "the connection to its target is not taken over, for the reason given there";
    item.what = "volume " + name;
    item.subsystem = device.subsystem;
    if (const mounts::Mount* now = mounted_at(mount.mount)) {
      const bool is_own = find_device(root_, survey_.devices, now->source) == &device && now->root == "/";
      item.mounted = is_own ? mount.mount : "";
      if (!is_own && item.reason.empty()) item.reason = covered(*now);
    }
    item.becomes_read_only = !mounts::has_option(mount.options, "ro");
    seen_mounts_.insert(mount.mount);
    take(nvme_volume_entry(name, target_name, device, mount), std::move(item), volumes_yaml_,
         imported_.volumes);
    if (imported_.items.back().is_taken()) taken_devices_.emplace(device.device, imported_.items.back());
  }

  void take_mounts_of(const FabricDevice& device) {
    for (const mounts::Mount& mount : survey_.mounts) {
      const std::string& target = mount.target.native();
      if (mount.source != "/dev/" + device.device || seen_mounts_.contains(target)) continue;
      const std::string origin = "the running mount of " + mount.source;
      if (const config::Volume* own = own_volume(config_, mount, &device)) {
        imported_.items.push_back({.what = "volume " + own->name,
                                   .where = printable(target),
                                   .origin = config::kDefaultPath,
                                   .subsystem = device.subsystem});
        continue;
      }
      Item item{.where = printable(target), .origin = origin, .reason = reason_to_leave(mount)};
      const auto taken = taken_devices_.find(device.device);
      if (item.is_taken() && taken != taken_devices_.end())
        item.reason = taken->second.what + " on " + taken->second.where +
                      " is the same device: unmount it before the steps, and make it a symbolic link";
      if (item.is_taken())
        item.reason = reason_of_rival(root_, survey_, {0, mount.source, target, mount.type, "", 0, ""});
      if (item.is_taken()) item.reason = reason_of_names(mount.source, target);
      take_volume(device, {target, mount.type, mounts::is_read_only(mount) ? "ro" : "rw", origin},
                  std::move(item));
    }
  }

  // Without a line or a unit it is gone after a boot, and maybe it is meant to be.
  void name_nfs_mount(const mounts::Mount& mount) {
    const std::string& target = mount.target.native();
    const bool is_automatic = std::ranges::any_of(survey_.mounts, [&](const mounts::Mount& known) {
      return known.type == "autofs" && target.starts_with(known.target.native());
    });
    if (!mount.type.starts_with("nfs") || is_automatic || seen_mounts_.contains(target)) return;
    if (own_volume(config_, mount, nullptr) != nullptr) return;
    mounts::Mount whole = mount;
    whole.root = "/";  // of an export, any folder
    if (!reason_to_leave(whole).empty()) return;
    const std::string origin = "the running mount of " + printable(mount.source);
    Item item{.what = "a mount", .where = printable(target), .origin = origin};
    item.reason = printable(mount.source) + " on " + printable(target) +
                  " is mounted by hand, and no file mounts it at boot: a volume with `nfs:` does";
    const std::string shown = item.where;
    name_only(shown, std::move(item));
  }

  void take_unmounted(const Found& found) {
    const std::string& subsystem = found.connection.subsystem;
    const auto target = drafts_.of_subsystem.find(subsystem);
    const bool is_known =
        std::ranges::any_of(imported_.items, [&](const Item& item) { return item.subsystem == subsystem; });
    if (subsystem.empty() || is_known || target == drafts_.of_subsystem.end()) return;
    const std::string name = name_for(subsystem, names_);
    const Entry entry = nvme_volume_entry(name, target->second, {"", subsystem, 1, {}, ""},
                                          {"/mnt/" + name, "", "ro", found.origin});
    Item item{.what = "volume " + name,
              .origin = found.origin,
              .reason = "it is connected, but nothing says where it is mounted",
              .subsystem = subsystem};
    take(entry, std::move(item), volumes_yaml_, imported_.volumes);
  }

  // Of a volume that the steps unmount.
  void name_use(const Use& use) {
    const bool is_step = std::ranges::any_of(imported_.items, [&](const Item& item) {
      return item.is_taken() && use.verb == "umount" && item.mounted == use.operand;
    });
    if (is_step) return;
    const auto volume = std::ranges::find_if(imported_.items, [&](const Item& item) {
      return item.is_taken() && !item.mounted.empty() && needs(use, item.mounted);
    });
    if (volume == imported_.items.end()) return;
    imported_.items.push_back({.what = use.what,
                               .where = printable(use.where),
                               .origin = printable(use.origin),
                               .reason = "it keeps " + volume->what + " on " + volume->where + " in use: `" +
                                         use.verb + " " + printable(use.operand) + "` before the steps",
                               .ended_by = use.verb,
                               .ended = use.operand});
  }

  void take_unit(const ConnectUnit& unit) {
    imported_.items.push_back({.what = "unit " + printable(unit.name),
                               .origin = printable(unit.file),
                               .reason = reason_to_keep(unit, survey_, imported_.items),
                               .units = {unit}});
  }

  std::string body() const { return body(targets_yaml_, volumes_yaml_); }
  static std::string body(const std::string& targets, const std::string& volumes) {
    return "version: 1\n" + section("targets", targets) + section("volumes", volumes);
  }

  const SystemRoot& root_;
  const Survey& survey_;
  const TargetDrafts drafts_;
  config::Config config_;  // the one that is there; without volumes if there is none
  Imported imported_;
  std::set<std::string> names_, taken_targets_, seen_mounts_;
  std::map<std::string, std::string> volumes_;  // their names by mount point
  std::map<std::string, Item> taken_devices_;   // the volume of each
  std::string targets_yaml_, volumes_yaml_;
};

}  // namespace

Imported import_configuration(const SystemRoot& root, const Survey& survey, WallTime now) {
  return Writer(root, survey).write(now);
}

}  // namespace spark::host
