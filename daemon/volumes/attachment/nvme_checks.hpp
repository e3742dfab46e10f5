// What has to hold before a namespace is mounted; each refusal is a sentence with a way out.
#pragma once

#include "daemon/volumes/context.hpp"

namespace spark::volumes {

// It is the file system that the volume is: given in the configuration, or pinned at its first mount.
Result<> check_identity(const VolumeContext& volume, const mounts::Superblock& superblock);
// A writer does not write to a damaged one, and a reader does not read one that is being written.
Result<> check_safe_to_mount(const VolumeContext& volume, const mounts::Superblock& superblock);

}  // namespace spark::volumes
