// Holds a volume that a worker writes or reads, so that it can't be unmounted meanwhile.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "base/file.hpp"
#include "base/json.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/result.hpp"
#include "staging/outputs/destination_folder.hpp"

namespace spark::workers {

// Whether the request's "mount" is the opened root of the mount that the daemon checked: another disk may be
// mounted there meanwhile. `mount`: the topmost there, nullptr for none.
bool is_checked_mount(const mounts::Mount* mount, const UniqueFd& root, const json::object& request);

// Unavailable if the volume is not mounted at the request's "mount" (the mount point is then a folder of the
// root disk), or is read-only but must be written. An empty path means a simulated host, where nothing is
// held.
Result<UniqueFd> hold_volume(const json::object& request, bool for_writing);

// With whose rights to look at `path` on the held volume: the request's "uid"; otherwise the owner of what is
// there, and this process's own user if there is nothing.
Result<uid_t> user_of(const json::object& request, const std::filesystem::path& path, const UniqueFd& volume);

// A folder of that volume to write to, made if it is missing.
struct OpenedFolder {
  UniqueFd volume;  // held
  staging::DestinationFolder folder;
};
// Switches to the request's "uid" first. `folder`: below the request's "root".
Result<OpenedFolder> open_destination(const json::object& request, const std::filesystem::path& folder);

}  // namespace spark::workers
