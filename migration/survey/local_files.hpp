// Files that can be read at once and without an effect: nothing is looked at on a mount whose server or
// target may be silent, and only regular files are opened: a FIFO would wait, and /dev/watchdog would reset
// the machine.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/result.hpp"
#include "migration/survey/fabric_devices.hpp"

namespace spark::host {

class LocalFiles {
 public:
  LocalFiles(SystemRoot root, const std::vector<mounts::Mount>& mounts,
             const std::vector<FabricDevice>& devices);

  const SystemRoot& root() const { return root_; }
  // `path` as a program of this host names it; symbolic links are followed. Unavailable: it is on such a
  // mount. Invalid: it is no regular file.
  Result<std::string> read(const std::filesystem::path& path, std::size_t limit) const;

 private:
  SystemRoot root_;
  std::set<std::filesystem::path> closed_;  // mount points that nothing is looked at from on

  Result<std::filesystem::path> real_path(const std::filesystem::path& path) const;
};

}  // namespace spark::host
