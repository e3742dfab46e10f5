// Conditions for mounting a namespace; each refusal is a sentence with a next step.
#pragma once

#include "daemon/volumes/context.hpp"

namespace spark::volumes {

// It is the volume's file system: set in the configuration, or pinned at its first mount.
Result<> check_identity(const VolumeContext& volume, const mounts::Superblock& superblock);
// A writer must not write to a damaged file system, and a reader must not read one that is being written.
Result<> check_safe_to_mount(const VolumeContext& volume, const mounts::Superblock& superblock,
                             bool is_writer);
// No other mount of the device has a file system that was shut down, or a former one.
asio::awaitable<Result<>> check_other_mounts(VolumeContext& volume, dev_t device, std::string uuid);
// Once the UUID that a person gave the mounted file system is configured, its record has it too, and with it
// that it is published.
asio::awaitable<void> follow_rename(VolumeContext& volume);

}  // namespace spark::volumes
