// What else of a manual setup concerns the mount of a volume.
#pragma once

#include <string>
#include <vector>

#include "migration/import.hpp"

namespace spark::host {

// Why a mount is left out beside another one that the next boot makes on its mount point, or of its device:
// what stays of the two would keep the volume from being mounted. Empty: there is none. `mount`: of the
// survey, or a running one with number 0. Two lines of fstab with one mount point are not compared here.
std::string reason_of_rival(const SystemRoot& root, const Survey& survey, const FstabLine& mount);

// An item for each unit that begins with, or after, the mount of a volume, which systemd no longer makes.
std::vector<Item> units_that_need(const Survey& survey, const std::vector<Item>& items);

}  // namespace spark::host
