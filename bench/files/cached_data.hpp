// How much of a dataset is in this host's page cache.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace spark::bench {

// Whether the byte at `offset` is in the page cache. No value: the file system does not tell.
using IsCached = std::function<std::optional<bool>(int fd, Bytes offset)>;
// By a read that may not wait (RWF_NOWAIT): ext4, xfs and btrfs tell; overlayfs, tmpfs and NFS do not.
std::optional<bool> is_cached(int fd, Bytes offset);

// Bytes, estimated from a thousand pages all over the files of these folders, for any user who may read them.
// Reads no more than those pages. No value: there are no files, or of most of these pages it is not known, or
// there are too many files. Of so many it may be the least.
// May block: call it in a child process.
std::optional<Bytes> cached_data(const std::vector<std::string>& folders,
                                 const IsCached& is_cached_at = is_cached);

}  // namespace spark::bench
