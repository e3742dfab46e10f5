// A lock among the processes of all hosts that use a volume: an NFS server keeps locks on files, though not
// on folders. It ends with its process, or with its host.
#pragma once

#include <filesystem>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::staging {

enum class Holders { One, Many };

// Creates the file if it is missing. None if another process has a lock that excludes this one, or has just
// deleted the file or its folder. To delete the file, unlink it before the lock is released: then a process
// that was waiting for it gets none.
Result<UniqueFd> lock_file(const std::filesystem::path& file, Holders holders);

// Whether this open file or folder is still what the path leads to; asks the server of an NFS client.
bool still_has_name(const UniqueFd& fd, const std::filesystem::path& file);

}  // namespace spark::staging
