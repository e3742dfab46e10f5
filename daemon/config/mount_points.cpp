#include "daemon/config/mount_points.hpp"

#include <algorithm>

namespace spark::config {

void MountPoints::add(const Volume& volume) {
  if (volume.mount.empty()) return;
  volumes_.emplace(volume.mount.native(), volume.name);
  mounts_.emplace(volume.name, volume.mount.native());
}

const std::string* MountPoints::at(const std::filesystem::path& path) const {
  const auto found = volumes_.find(path.native());
  return found == volumes_.end() ? nullptr : &found->second;
}

const std::string* MountPoints::above(const std::filesystem::path& path) const {
  std::string folder = path.native();
  while (!folder.empty()) {
    if (const std::string* volume = at(folder)) return volume;
    folder.resize(folder == "/" ? 0 : std::max<std::size_t>(folder.rfind('/'), 1));
  }
  return nullptr;
}

const std::string* MountPoints::below(const std::filesystem::path& path) const {
  const std::string folder = path == "/" ? "/" : path.native() + "/";
  const auto next = volumes_.upper_bound(folder);
  return next == volumes_.end() || !next->first.starts_with(folder) ? nullptr : &next->second;
}

}  // namespace spark::config
