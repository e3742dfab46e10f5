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

class WantedUnits {
 public:
  // `entry_of`: by the layout's file number. `viewer` may be null.
  WantedUnits(staging::Viewer* viewer, const Layout& layout, const std::vector<staging::Entry*>& entry_of)
      : viewer_(viewer), layout_(layout), entry_of_(entry_of) {}

  bool has_readers() const { return viewer_ != nullptr; }
  // The next one; none if no reader waits for another.
  std::optional<WantedUnit> take();

 private:
  staging::Viewer* viewer_;
  const Layout& layout_;
  const std::vector<staging::Entry*>& entry_of_;

  std::optional<WantedUnit> unit_of(const staging::WantedOfFile& wanted) const;
};

}  // namespace spark::fleet
