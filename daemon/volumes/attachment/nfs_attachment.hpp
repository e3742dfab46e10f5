// Brings an NFS volume to its mount.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "daemon/volumes/attachment/mount_point.hpp"
#include "daemon/volumes/context.hpp"

namespace spark::volumes {

// As many connections as an NVMe/TCP target gets queues (min(8, CPUs)), unless the options set their number,
// or another transport. The kernel opens them for the first mount of a server.
std::vector<std::string> with_connections(std::vector<std::string> options, unsigned cpus);

asio::awaitable<Result<>> bring_up_nfs(VolumeContext& volume, MountPoint& mount_point);

}  // namespace spark::volumes
