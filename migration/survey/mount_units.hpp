// Mount units of this host's administrator: lines of fstab in another form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "migration/survey/fstab.hpp"
#include "migration/survey/unit_files.hpp"

namespace spark::host {

struct MountUnit {
  FstabLine mount;              // number 0
  std::vector<UnitFile> units;  // the mount unit, and its automount unit if there is one
  const UnitFile& unit() const { return units.front(); }
};

// What one unit's text mounts; without a mount point: it is none of that kind.
FstabLine parse_mount_unit(std::string_view text);

std::vector<MountUnit> read_mount_units(const LocalFiles& files);

}  // namespace spark::host
