// The folder of published copies as jobs see it: read-only, even for root. It is a bind mount of the folder
// onto itself, visible to every process. Workers that publish and evict there unmount it in a private mount
// namespace. The mount outlives the daemon, as volumes do.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::mounts {

// Done or AlreadyThere. Unsupported, with the reason, if such a mount is not allowed, or if a worker's
// private mount namespace would prevent volumes from being unmounted. `options`: suid and dev allow setuid
// programs and device files in the copies. `lock`: a private folder, see lock_private().
Result<Change> serve_read_only(const std::filesystem::path& folder, const std::vector<std::string>& options,
                               const std::filesystem::path& lock);

// For the rest of this process, which must have no other thread yet. Returns the root of the host's
// namespace: a file opened through it, by a path without the leading slash, counts as a use of the host's
// mounts. Does nothing if the folder has no such mount.
Result<UniqueFd> see_writable(const std::filesystem::path& folder);

// For all processes. Open files stay open, but can't be written.
Result<Change> stop_serving_read_only(const std::filesystem::path& folder);

// For live views, of which no process may answer any more: nothing waits for their file systems, and files
// that are open stay so. All that is mounted on the folder, one above the other.
void detach_all_on(const std::filesystem::path& folder);
// All mounts of the type, with what is mounted on them.
void detach_all_of(std::string_view type);

}  // namespace spark::mounts
