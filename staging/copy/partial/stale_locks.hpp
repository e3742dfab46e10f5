// Locks of killed processes that can't exit because the kernel blocks them in a read of an unreachable
// volume. They do no more work, but keep their locks until that read returns.
#pragma once

#include "base/access/locks.hpp"
#include "base/file.hpp"

namespace spark::staging {

// Whether a process has a flock on the file, and all threads of every such process have ended or are being
// killed.
bool is_stale_lock(const SystemRoot& root, const LockedFile& file);

}  // namespace spark::staging
