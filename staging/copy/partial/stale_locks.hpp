// Locks of processes that were killed and can't die, because the kernel holds them in a read of a volume that
// is away. They do nothing any more, and keep their locks for as long as that lasts.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

#include "base/file.hpp"

namespace spark::staging {

// A file as the kernel's list of locks names it: by the device of its file system, which for btrfs is not the
// one that stat tells.
struct LockedFile {
  dev_t device = 0;
  ino_t inode = 0;
};
// None if it is not there.
std::optional<LockedFile> locked_file(const SystemRoot& root, const std::filesystem::path& path);

// Whether somebody has a flock on the file, and all of their threads have ended or are being killed.
bool is_stale_lock(const SystemRoot& root, const LockedFile& file);

}  // namespace spark::staging
