// The folder of the published copies, as jobs see it: read-only, even for root. It is one bind mount of the
// folder onto itself, seen by every process. Workers publish and evict there: they take the mount off in a
// mount namespace of their own. The mount outlives the daemon, as volumes do.
#pragma once

#include <filesystem>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::mounts {

// Done or AlreadyThere. Unsupported, with the reason, where such a mount is not allowed, or where a worker's
// own mount namespace would keep volumes from being unmounted.
Result<Change> serve_read_only(const std::filesystem::path& folder);

// For the rest of this process, which has no other thread yet. Gives the root of the host's namespace: what
// is opened below it, without its slash, counts as a use of the host's mounts. Of no mount: nothing to do.
Result<UniqueFd> see_writable(const std::filesystem::path& folder);

// For everybody. Who has files open there keeps them, and may write to none of them.
Result<Change> stop_serving_read_only(const std::filesystem::path& folder);

}  // namespace spark::mounts
