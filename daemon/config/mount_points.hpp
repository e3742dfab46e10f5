// Which volume is mounted where, for questions about paths: each costs the path's depth, however many volumes
// there are.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "daemon/config/model.hpp"

namespace spark::config {

class MountPoints {
 public:
  MountPoints() = default;
  explicit MountPoints(const std::vector<Volume>& volumes) {
    for (const Volume& volume : volumes) add(volume);
  }
  void add(const Volume& volume);

  // A volume's name, or null. `at` is mounted at this very path, `above` at it or above it, `below` below it.
  const std::string* at(const std::filesystem::path& path) const;
  const std::string* above(const std::filesystem::path& path) const;
  const std::string* below(const std::filesystem::path& path) const;

  // Of a volume that one of them has named.
  std::filesystem::path of(const std::string& volume) const { return mounts_.at(volume); }

 private:
  std::map<std::string, std::string> volumes_;  // by mount point, in plain form
  std::map<std::string, std::string> mounts_;   // by volume
};

}  // namespace spark::config
