// The file systems of a history: the cache's drive, the daemon's state folder, and the disks with the
// sources, which are mounted or not.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/units.hpp"

namespace spark::histories::copies {

// Before the first history: nothing that is mounted from now on is seen by the rest of the host.
void enter_own_namespace();

struct DriveSizes {
  Bytes cache = 0, state = 0;
};

enum class Mounted { Right, Nothing, Other };

class Drives {
 public:
  explicit Drives(const DriveSizes& sizes);
  ~Drives();
  Drives(const Drives&) = delete;
  Drives& operator=(const Drives&) = delete;

  // A disk on which a source is, and its usual mount point.
  std::filesystem::path add_disk(const std::string& name);
  static std::filesystem::path mount_point(const std::string& name);
  static mounts::MountNumbers numbers(const std::string& name);  // of what is mounted there
  void mount(const std::string& name, Mounted what);
  // A mount namespace in which the copies are not read-only, as each worker makes one for itself: that takes
  // longer than all its work, above all while other programs do the same. -1: the copies are not mounted
  // read-only yet.
  int namespace_for_workers();
  Mounted mounted(const std::string& name) const { return mounted_.at(name); }

  // Other data on a drive, until it is full but for `left` bytes.
  static void fill(const std::filesystem::path& drive, Bytes left);
  static void unfill(const std::filesystem::path& drive);
  static Bytes free_on(const std::filesystem::path& drive);
  // Bytes of the files below folders of one drive, each counted once; by inode.
  static std::map<ino_t, Bytes> files_below(const std::vector<std::filesystem::path>& folders);
  static Bytes sum_of(const std::map<ino_t, Bytes>& files);

 private:
  std::map<std::string, Mounted> mounted_;
  UniqueFd for_workers_;
};

}  // namespace spark::histories::copies
