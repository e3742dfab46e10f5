#include "migration/rivals.hpp"

#include <algorithm>

#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"
#include "migration/survey/dependent.hpp"

namespace spark::host {
namespace {

bool starts_at_boot(const MountUnit& unit) {
  return std::ranges::any_of(unit.units, [](const UnitFile& file) { return !file.links.empty(); });
}

bool is_volume_of_systemd(const Item& item) {
  return item.is_taken() && item.what.starts_with("volume ") &&
         (!item.fstab_line.empty() || !item.units.empty());
}

// It is moved away, or is a drop-in of such a unit.
bool goes_away(const std::string& file, const std::vector<Item>& items) {
  return std::ranges::any_of(items, [&](const Item& item) {
    return item.is_taken() && std::ranges::any_of(item.units, [&](const UnitFile& unit) {
             return file == unit.file || file.starts_with(unit.file + ".d/");
           });
  });
}

}  // namespace

std::string reason_to_leave(const mounts::Mount& mount) {
  if (mount.root != "/")
    return "only " + printable(mount.root) +
           " of the file system is mounted there: unmount it before the "
           "steps, and make it a symbolic link";
  for (const char* folder :
       {"/media", "/run", "/var/lib/kubelet", "/var/lib/docker", "/var/lib/containers"}) {
    if (mount.target.native().starts_with(std::string(folder) + "/"))
      return std::string("another program mounted it in ") + folder;
  }
  return {};
}

std::string reason_of_names(const std::string& source, const std::string& mount) {
  if (printable(source) == source && printable(mount) == mount) return {};
  return "a configuration can't hold its name, which has control characters or is not UTF-8: mount it under "
         "another name, and import again";
}

std::string covered(const mounts::Mount& now) {
  return printable(now.source) + " is mounted on " + printable(now.target.native()) +
         " now: unmount it, then import again";
}

std::string unclear(const FstabLine& line) {
  return printable(line.source) + " is given in the order of connecting, and nothing is mounted on " +
         printable(line.mount) + " now: mount there what belongs there, and import again";
}

const config::Volume* own_volume(const config::Config& config, const mounts::Mount& mount,
                                 const FabricDevice* device) {
  const auto at = std::ranges::find_if(config.volumes, [&](const config::Volume& volume) {
    const bool is_source = device == nullptr ? volume.nfs.has_value()
                                             : volume.nvme && volume.nvme->subsystem == device->subsystem &&
                                                   volume.nvme->nsid == device->nsid;
    const bool reads = volume.access == config::Access::ReadOnly;
    return is_source && volume.mount == mount.target && mounts::is_read_only(mount) == reads;
  });
  return at == config.volumes.end() ? nullptr : &*at;
}

std::string reason_of_rival(const SystemRoot& root, const Survey& survey, const FstabLine& mount) {
  const FabricDevice* device = find_device(root, survey.devices, mount.source);
  const auto reason = [&](const FstabLine& other, const std::string& name) -> std::string {
    const bool is_compared = mount.number == 0 || other.number == 0;
    if (other.mount == mount.mount)
      return is_compared ? name + " also mounts there: remove one of the two, and import again" : "";
    if (device == nullptr || find_device(root, survey.devices, other.source) != device) return "";
    return name + " mounts the same device, on " + printable(other.mount) +
           ": remove one of the two, and import again";
  };
  for (const FstabLine& line : survey.fstab) {
    if (&line == &mount || is_bind(line) || mounts::has_option(line.options, "noauto")) continue;
    const std::string why = reason(line, "line " + std::to_string(line.number) + " of /etc/fstab");
    if (!why.empty()) return why;
  }
  for (const MountUnit& unit : survey.mount_units) {
    if (&unit.mount == &mount || is_bind(unit.mount) || !starts_at_boot(unit)) continue;
    const std::string why = reason(unit.mount, printable(unit.unit().file));
    if (!why.empty()) return why;
  }
  return {};
}

std::vector<Item> units_that_need(const Survey& survey, const std::vector<Item>& items) {
  std::vector<Item> found;
  for (const MountNeed& need : survey.mount_needs) {
    if (goes_away(need.file, items)) continue;
    for (const Item& item : items) {
      const bool is_unit = need.words.ends_with(".mount");
      const bool is_of_it =
          is_unit ? printable(need.path) == item.where : is_at_or_below(printable(need.path), item.where);
      if (!is_volume_of_systemd(item) || !is_of_it) continue;
      const std::string name = item.what.substr(item.what.find(' ') + 1), file = printable(need.file);
      const auto is_same = [&](const Item& known) { return known.origin == file && known.needs_volume; };
      if (std::ranges::any_of(items, is_same) || std::ranges::any_of(found, is_same)) continue;
      Item one{.what = "a unit", .where = item.where, .origin = file};
      one.needs_volume = true;
      one.reason = "`" + printable(need.words) + "` is the mount of volume " + name +
                   ", which systemd no longer makes at boot: write `ExecStartPre=/usr/bin/spark-stage wait " +
                   name + "` and `TimeoutStartSec=infinity` in its place";
      found.push_back(std::move(one));
    }
  }
  return found;
}

}  // namespace spark::host
