// The mount at a volume's mount point, and whether it belongs to the volume: a device is identified by the
// subsystem and namespace behind its number, an NFS mount by its export, never by a device's name.
#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "daemon/config/model.hpp"
#include "daemon/volumes/seams/seams.hpp"

namespace spark::volumes {

// Dead: the volume's mount, on a device that is gone. Former: the volume's mount, whose I/O waits for an
// address that the target has left, while the target shows another disk at its present one. Covered: the
// volume's mount, hidden by another mount on top of it or over one of its parent folders. Broken: the
// volume's mount, on the right device, but the file system shut down or went read-only (only a volume knows
// that).
enum class Place { Empty, Ours, Dead, Former, Broken, Foreign, Covered, Unknown };

struct Standing {
  Place place = Place::Unknown;
  std::optional<mounts::Mount> top;  // the mount that programs reach; none: Empty or Unknown
  std::optional<OwnMount> own;       // the volume's mount, also if it is covered
  bool is_own_closed = false;        // it is mounted read-only, and so is its file system
};

Standing look_at_place(const Seams& seams, const config::Volume& volume);

// The volume's namespace, among those of its own target's controllers.
Result<nvmetcp::Namespace> own_namespace(const Seams& seams, const config::Volume& volume);

// All mounts of a device, at any place.
Result<std::vector<mounts::Mount>> mounts_of(const Seams& seams, dev_t device);

// A mount of the volume's device for writing at any other place, which another program made: the kernel
// writes through it like through the volume's own.
std::optional<OwnMount> writer_elsewhere(const Seams& seams, const config::Volume& volume);

// For a Former one: the controller of the device, whose address the target has left.
std::optional<nvmetcp::Controller> former_path(const Seams& seams, const config::Volume& volume,
                                               dev_t device);

// For a Covered volume: Refused, naming the mount that hides it.
Error covered(const config::Volume& volume, const Standing& standing);
// The refusal of a mount that can, or can't, be written, unlike the configuration.
Error mounted_otherwise(const config::Volume& volume, bool wants_read_only);

// The volume's mount is at its mount point, and programs can reach it.
bool is_own(Place place);

// A dead device's mount is detached even if it is in use, unless the configuration requires holding it. On a
// live device the kernel keeps a broken file system until its last user has closed it.
bool may_detach(const config::Volume& volume, Place place);

}  // namespace spark::volumes
