// Locks of processes that were killed and can't die, because the kernel holds them in a read of a volume that
// is away. They do nothing any more, and keep their locks for as long as that lasts.
#pragma once

#include <sys/stat.h>

#include "base/file.hpp"

namespace spark::staging {

// Whether somebody has a flock on the file, and all of their threads have ended or are being killed.
bool is_locked_by_the_dying(const SystemRoot& root, const struct stat& file);

}  // namespace spark::staging
