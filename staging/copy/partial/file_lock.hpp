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

}  // namespace spark::staging
