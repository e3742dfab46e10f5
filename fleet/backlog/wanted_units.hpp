// Units of a set that readers of a live view wait for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fleet/protocol/layout.hpp"
#include "staging/copy/transfer/viewer.hpp"

namespace spark::fleet {

struct WantedUnit {
  std::uint64_t file = 0;  // the layout's number
  std::uint64_t unit = 0;
  std::uint64_t end = 0;  // of the file's units: those behind it come next
  // The file has several pieces: only a peer that vouches for this one helps its readers.
  bool is_part = false;
  std::uint64_t view_unit = 0;  // of the file, see staging::kViewUnit
};

// The next one; none if no reader waits for another. `entry_of`: by the layout's file number.
std::optional<WantedUnit> take_wanted_unit(staging::Viewer& viewer, const Layout& layout,
                                           const std::vector<staging::Entry*>& entry_of);

}  // namespace spark::fleet
