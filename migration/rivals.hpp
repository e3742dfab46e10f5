// What else of a manual setup concerns the mount of a volume.
#pragma once

#include <string>
#include <vector>

#include "base/kernel/mount_table.hpp"
#include "daemon/config/model.hpp"
#include "migration/import.hpp"

namespace spark::host {

// Why a mount that no file names is none of the administrator's; empty: it is.
std::string reason_to_leave(const mounts::Mount& mount);

// Why a mount can't be written into a configuration, where it would be the name of another folder; empty: it
// can.
std::string reason_of_names(const std::string& source, const std::string& mount);

// Of a mount point with another mount, and of a line with a kernel's name whose mount point has none.
std::string covered(const mounts::Mount& now);
std::string unclear(const FstabLine& line);

// The volume of the configuration that is there already, as spark-staged mounts it; null: there is none. The
// steps must not unmount it. `device`: null for NFS.
const config::Volume* own_volume(const config::Config& config, const mounts::Mount& mount,
                                 const FabricDevice* device);

// Why a mount is left out beside another one that the next boot makes on its mount point, or of its device:
// what stays of the two would keep the volume from being mounted. Empty: there is none. `mount`: of the
// survey, or a running one with number 0. Two lines of fstab with one mount point are not compared here.
std::string reason_of_rival(const SystemRoot& root, const Survey& survey, const FstabLine& mount);

// An item for each unit that begins with, or after, the mount of a volume, which systemd no longer makes.
std::vector<Item> units_that_need(const Survey& survey, const std::vector<Item>& items);

}  // namespace spark::host
