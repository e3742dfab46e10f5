// What is mounted at a volume's mount point, and whether it is the volume's own: a device is known by the
// subsystem and namespace behind its number, an NFS mount by its export, never by a device's name.
#pragma once

#include <optional>

#include "daemon/config/model.hpp"
#include "daemon/volumes/seams/seams.hpp"

namespace spark::volumes {

// Dead: the volume's, on a device that is gone. Covered: the volume's, with another mount on top. Broken: the
// volume's, on the right device, but the file system shut down or went read-only (only a volume knows that).
enum class Place { Empty, Ours, Dead, Broken, Foreign, Covered, Unknown };

struct Standing {
  Place place = Place::Unknown;
  std::optional<mounts::Mount> top;  // the topmost mount; none: Empty or Unknown
};

Standing look_at_place(const Seams& seams, const config::Volume& volume);

// Of a Covered volume: Refused, with what is on top.
Error covered(const config::Volume& volume, const Standing& standing);

// The volume's mount is at its mount point, where programs reach it.
bool is_own(Place place);

// A dead device's mount is detached, whoever uses it, unless the configuration says to hold it. A live device
// keeps its broken file system in the kernel until the last user has let go.
bool may_detach(const config::Volume& volume, Place place);

}  // namespace spark::volumes
