// mount(8) onto an open folder. Whoever may rename a folder above the mount point could otherwise put a link
// there while a target is waited for, and have the volume mounted over any folder of the host.
#pragma once

#include <filesystem>
#include <string>

#include "base/file.hpp"
#include "daemon/mounts/libmount_call.hpp"

namespace spark::mounts {

// Mounts in a separate mount namespace, where a user's symbolic link affects no other process, and moves the
// mount onto `folder`. ELOOP if that is no longer at `target`. It mounts by path where such a namespace is
// not allowed, as to the service that releases volumes, or would keep other volumes busy: on a host without
// shared mounts, which systemd makes.
MountOutcome mount_onto(const UniqueFd& folder, const std::string& source,
                        const std::filesystem::path& target, const std::string& type,
                        const std::string& options);

// Mounts and unmounts in the host's namespace take effect in another process's namespace too. Otherwise that
// namespace would keep a volume busy after `umount` on the host.
bool propagates_mounts();

}  // namespace spark::mounts
