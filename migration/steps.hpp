// The commands that put the imported configuration in the place of the manual setup.
#pragma once

#include <string>
#include <vector>

#include "migration/import.hpp"

namespace spark::host {

// Where the steps copy the files that they change, each under its own path in a folder of this move.
inline constexpr char kKept[] = "var/lib/spark-stage/before-import";

// The unit of systemd that mounts `mount` on access: "mnt-nas.automount".
std::string automount_unit(const std::string& mount);

// Comments of the configuration: a script, a command a line. The order keeps mounted volumes intact: nothing
// is disconnected, and nothing mounted twice.
std::string steps_text(const std::vector<Item>& items, WallTime now);

}  // namespace spark::host
