// Mounts of fstab and of mount units that need a folder on another mount.
#pragma once

#include <string>

#include "migration/survey/fstab.hpp"

namespace spark::host {

// What the line needs of the mount point `mount`, as the end of a sentence about it: "is a folder of", "lies
// on"; empty: nothing. Its mount point, its source (bind mounts, images, swap files), or the folders of an
// overlay.
std::string need_of(const FstabLine& line, const std::string& mount);

// The same of a line of fstab whose need the boot does not wait for; empty as well for one that is mounted
// only on request.
std::string need_at_boot(const FstabLine& line, const std::string& mount);

bool is_bind(const FstabLine& line);

}  // namespace spark::host
