#include <algorithm>
#include <set>
#include <string>

#include "base/text.hpp"
#include "daemon/config/mount_points.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/config/readers.hpp"
#include "daemon/config/section.hpp"
#include "daemon/config/values.hpp"

namespace spark::config {
namespace {

void read_filesystem(NvmeSource& source, Section& section, Problems& problems) {
  const Node* node = section.map("filesystem");
  if (node == nullptr) return;
  Section filesystem(*node, section.path_of("filesystem"), problems);
  using Words = std::vector<std::pair<std::string, std::string>>;
  const Words types = {{"ext4", "ext4"}, {"xfs", "xfs"}};
  source.filesystem_type = filesystem.choice<std::string>("type", types).value_or("");
  source.filesystem_uuid = filesystem.checked<std::string>("uuid", parse_uuid).value_or("");
}

void read_nvme(Volume& volume, Section& section, const Config& so_far, Problems& problems) {
  NvmeSource source;
  source.target = section.text("target").value_or("");
  source.subsystem = section.checked<std::string>("subsystem", parse_nqn).value_or("");
  constexpr std::int64_t kLastNamespace = 0xFFFFFFFE;  // the next number means all namespaces
  source.nsid = static_cast<std::uint32_t>(section.integer("namespace", 1, kLastNamespace).value_or(1));
  read_filesystem(source, section, problems);
  if (!section.has("target")) {
    section.missing("target", "write a name of 'targets:', or 'nfs: HOST:/PATH' for an NFS export");
  } else if (!source.target.empty() && !so_far.targets.contains(source.target)) {
    section.no_such("target", "target", source.target, so_far.targets, [](auto& one) { return one.first; });
  }
  if (!section.has("subsystem")) {
    section.missing("subsystem", "`spark-stage discover ADDRESS` lists a target's subsystems");
  }
  volume.nvme = std::move(source);
}

void read_nfs(Volume& volume, Section& section) {
  volume.nfs = section.checked<NfsSource>("nfs", parse_nfs).value_or(NfsSource{});
  for (const char* key : {"target", "subsystem", "namespace", "filesystem", "fence", "on_loss"}) {
    if (section.has(key)) section.problem(key, "belongs to an NVMe/TCP volume; this one is an NFS export");
  }
}

void read_access(Volume& volume, Section& section) {
  volume.access = section.one_of<Access>("access");
  if (volume.nfs) return;
  volume.fence = section.one_of<Fence>("fence");
  volume.on_loss = section.one_of<OnLoss>("on_loss");
  if (section.has("fence") && volume.access == Access::ReadOnly) {
    section.problem("fence", "keeps other writers out, so it goes with 'access: exclusive' only");
  }
}

void read_mount(Volume& volume, Section& section) {
  volume.mount =
      section.checked<std::filesystem::path>("mount", parse_absolute_path).value_or(std::filesystem::path());
  if (!section.has("mount")) section.missing("mount", "write the folder to mount it at, as in /mnt/data");
  if (volume.mount == "/") section.problem("mount", "'/' is the root file system");
  for (const char* system : {"/proc", "/sys", "/dev", "/etc", "/boot", "/usr"}) {
    if (is_within(volume.mount, system)) {
      section.problem("mount", std::string("is in ") + system + ", which belongs to the system");
    }
  }
}

void read_options(Volume& volume, Section& section) {
  for (const std::string& text : section.texts("options")) {
    auto option = section.accept("options", parse_mount_option(text, volume.access, volume.nfs.has_value()));
    if (option) volume.options.push_back(std::move(*option));
  }
}

// For a volume hidden by another one, or inside it, the order of mounting would decide which files are
// visible.
void check_overlap(const Volume& volume, const MountPoints& before, Section& section) {
  if (volume.mount.empty()) return;
  if (const std::string* same = before.at(volume.mount)) {
    section.problem("mount",
                    "'" + volume.mount.string() + "' is the mount point of volume '" + *same + "' already");
    return;
  }
  const std::string* above = before.above(volume.mount);
  if (const std::string* other = above != nullptr ? above : before.below(volume.mount)) {
    section.problem("mount", "'" + volume.mount.string() + "' and '" + before.of(*other).string() +
                                 "' of volume '" + *other + "' overlap");
  }
}

// Each of the two would unmount and reserve what the other one uses.
void check_one_namespace(const Volume& volume, const Config& so_far, const std::vector<Volume>& before,
                         Section& section) {
  if (!volume.nvme || !so_far.targets.contains(volume.nvme->target)) return;
  const Target& target = so_far.targets.at(volume.nvme->target);
  const auto same = std::ranges::find_if(before, [&](const Volume& other) {
    return other.nvme && other.nvme->subsystem == volume.nvme->subsystem &&
           other.nvme->nsid == volume.nvme->nsid && so_far.targets.contains(other.nvme->target) &&
           is_same_target(so_far.targets.at(other.nvme->target), target);
  });
  if (same == before.end()) return;
  section.problem("namespace", "namespace " + std::to_string(volume.nvme->nsid) + " of " +
                                   printable(volume.nvme->subsystem) + " is volume '" + same->name +
                                   "' already");
}

// A volume's records in the state folder are "NAME.json", "NAME.held.json" and so on.
void check_records(const Member& member, const std::set<std::string>& before, Problems& problems) {
  const std::string& name = member.key;
  for (const std::string_view end : kVolumeRecords) {
    const std::string record(end);
    const std::string shorter = name.ends_with(record) ? name.substr(0, name.size() - record.size()) : "";
    for (const std::string& other : {name + record, shorter}) {
      if (!before.contains(other)) continue;
      problems.add(member.at, "volumes." + name +
                                  ": one of its files in the state folder would be "
                                  "volume '" +
                                  other + "'s as well; rename one");
    }
  }
}

// The volumes before it in the file.
struct VolumesBefore {
  const std::vector<Volume>& volumes;
  const MountPoints& mount_points;
};

Volume read_volume(const Member& member, const Config& so_far, const VolumesBefore& before,
                   Problems& problems) {
  Section section(member.value, "volumes." + member.key, problems);
  Volume volume;
  volume.name = member.key;
  if (section.has("nfs")) {
    read_nfs(volume, section);
  } else {
    read_nvme(volume, section, so_far, problems);
  }
  read_access(volume, section);
  read_mount(volume, section);
  read_options(volume, section);
  check_overlap(volume, before.mount_points, section);
  check_one_namespace(volume, so_far, before.volumes, section);
  return volume;
}

}  // namespace

std::vector<Volume> read_volumes(const Node& node, const Config& so_far, Problems& problems) {
  check_names(node, "volumes", "volume", problems);
  std::vector<Volume> volumes;
  std::set<std::string> names;
  MountPoints mount_points;
  for (const Member& member : node.members) {
    check_records(member, names, problems);
    names.insert(member.key);
    volumes.push_back(read_volume(member, so_far, {volumes, mount_points}, problems));
    mount_points.add(volumes.back());
  }
  return volumes;
}

}  // namespace spark::config
