// Finds the volume mounted at a path, in time proportional to the path's depth, whatever the number of
// volumes.
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

  // A volume's name, or null. `at`: mounted at exactly this path; `above`: at the path or above it; `below`:
  // below it.
  const std::string* at(const std::filesystem::path& path) const;
  const std::string* above(const std::filesystem::path& path) const;
  const std::string* below(const std::filesystem::path& path) const;

  // For a volume that one of those functions has returned.
  std::filesystem::path of(const std::string& volume) const { return mounts_.at(volume); }

 private:
  std::map<std::string, std::string> volumes_;  // by mount point, in plain form
  std::map<std::string, std::string> mounts_;   // by volume
};

}  // namespace spark::config
