#include "migration/survey/uses.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"

namespace spark::host {
namespace {

// "Filename Type Size Used Priority", with \040 for a blank.
void add_swaps(const SystemRoot& root, std::vector<Use>& uses) {
  const auto text = read_file(root / "proc/swaps");
  for (const std::string& line : split(text.value_or(""), '\n')) {
    const std::string path = decode_octal(line.substr(0, line.find_first_of(" \t")));
    if (!path.starts_with('/') || path.starts_with("/dev/")) continue;
    uses.push_back({"a swap file", path, "/proc/swaps", {path}, "swapoff", path});
  }
}

// The file system of an image is unmounted first; what it is mounted on is in the mount table.
Use use_of_loop(const std::string& image, const std::string& device,
                const std::vector<mounts::Mount>& mounts) {
  Use use{"an image", image, device, {image}, "losetup -d", device};
  for (const mounts::Mount& mount : mounts) {
    if (mount.source != device && !mount.source.starts_with(device + "p")) continue;
    use.verb = "umount";
    use.operand = mount.target.native();
  }
  return use;
}

void add_loops(const SystemRoot& root, const std::vector<mounts::Mount>& mounts, std::vector<Use>& uses) {
  for (const std::filesystem::path& entry : list_folder(root / "sys/block")) {
    const std::string name = entry.filename().native();
    if (!name.starts_with("loop")) continue;
    const auto image = read_line_file(entry / "loop/backing_file");
    if (!image || !image->starts_with('/')) continue;
    uses.push_back(use_of_loop(*image, "/dev/" + name, mounts));
  }
}

// "lowerdir=/a:/b,upperdir=/c,workdir=/d"; newer kernels show "lowerdir+=/a" for each.
void add_overlays(const std::vector<mounts::Mount>& mounts, std::vector<Use>& uses) {
  for (const mounts::Mount& mount : mounts) {
    if (mount.type != "overlay") continue;
    const std::string where = mount.target.native();
    Use use{"an overlay", where, "the running mount of " + where, {}, "umount", where};
    for (const std::string& option : split(mount.super_options, ',')) {
      const std::size_t equals = option.find('=');
      if (equals == std::string::npos || option.find("dir") == std::string::npos) continue;
      for (const std::string& folder : split(option.substr(equals + 1), ':'))
        if (folder.starts_with('/')) use.needs.emplace_back(folder);
    }
    if (!use.needs.empty()) uses.push_back(std::move(use));
  }
}

// Mounts in a folder of another one, and further ones of a target's device, which keep its file system open:
// the ones made last first.
void add_mounts(const std::vector<FabricDevice>& devices, const std::vector<mounts::Mount>& mounts,
                std::vector<Use>& uses) {
  std::map<std::string, std::vector<std::filesystem::path>> places;  // by device
  for (const FabricDevice& device : devices) places["/dev/" + device.device];
  for (const mounts::Mount& mount : mounts) {
    if (const auto its = places.find(mount.source); its != places.end()) its->second.push_back(mount.target);
  }
  std::set<std::string> known;
  for (const Use& use : uses) known.insert(use.verb == "umount" ? use.operand : "");
  for (auto mount = mounts.rbegin(); mount != mounts.rend(); ++mount) {
    const std::string where = mount->target.native();
    if (!known.insert(where).second) continue;
    Use use{"a mount", where, "the running mount of " + where, {mount->target.parent_path()},
            "umount",  where};
    if (const auto its = places.find(mount->source); its != places.end())
      use.needs.insert(use.needs.end(), its->second.begin(), its->second.end());
    std::erase(use.needs, mount->target);
    uses.push_back(std::move(use));
  }
}

}  // namespace

std::vector<Use> uses_now(const SystemRoot& root, const std::vector<FabricDevice>& devices,
                          const std::vector<mounts::Mount>& mounts) {
  std::vector<Use> uses;  // in the order in which they are ended
  add_overlays(mounts, uses);
  add_loops(root, mounts, uses);
  add_swaps(root, uses);
  add_mounts(devices, mounts, uses);
  return uses;
}

bool needs(const Use& use, const std::string& mount) {
  return std::ranges::any_of(use.needs, [&](const std::filesystem::path& one) {
    return one == mount || one.native().starts_with(mount + "/");
  });
}

}  // namespace spark::host
