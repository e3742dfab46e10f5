// Locks of killed processes that can't exit because the kernel blocks them in a read of an unreachable
// volume. They do no more work, but keep their locks until that read returns.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

#include "base/file.hpp"

namespace spark::staging {

// A file as identified in the kernel's list of locks: by the device of its file system. On btrfs that is not
// the device reported by stat.
struct LockedFile {
  dev_t device = 0;
  ino_t inode = 0;
};
// None if it does not exist.
std::optional<LockedFile> locked_file(const SystemRoot& root, const std::filesystem::path& path);

// Whether a process has a flock on the file, and all threads of every such process have ended or are being
// killed.
bool is_stale_lock(const SystemRoot& root, const LockedFile& file);

}  // namespace spark::staging
