// Lines of fstab that need a folder on another mount.
#pragma once

#include <string>

#include "migration/fstab.hpp"

namespace spark::host {

// What the line needs of the mount point `mount`, as the end of a sentence about it: "is a folder of", "lies
// on"; empty: nothing. Its mount point, its source (bind mounts, images, swap files), or the folders of an
// overlay.
std::string need_of(const FstabLine& line, const std::string& mount);

}  // namespace spark::host
