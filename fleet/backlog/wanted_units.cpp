#include "fleet/backlog/wanted_units.hpp"

#include <algorithm>

#include "staging/manifest/units.hpp"

namespace spark::fleet {

std::optional<WantedUnit> WantedUnits::take() {
  if (viewer_ == nullptr) return std::nullopt;
  for (const bool is_small : {false, true}) {
    while (const auto wanted = viewer_->take_wanted(is_small))
      if (const auto unit = unit_of(*wanted)) return unit;
  }
  return std::nullopt;
}

std::optional<WantedUnit> WantedUnits::unit_of(const staging::WantedOfFile& wanted) const {
  // By path: the entries are in a deque, and their addresses have no order.
  const auto path_of = [](const staging::Entry* entry) { return entry->path.view(); };
  const auto at = std::ranges::lower_bound(entry_of_, wanted.entry->path.view(), {}, path_of);
  if (at == entry_of_.end() || *at != wanted.entry) return std::nullopt;
  const auto file = static_cast<std::uint64_t>(at - entry_of_.begin());
  const Bytes size = layout_.size_of(file);
  if (Layout::is_packed(size)) {
    const std::uint64_t pack = layout_.pack_of(file);
    return WantedUnit{file, pack, pack + 1, false, wanted.unit};
  }
  const std::uint64_t first = layout_.first_unit_of(file), pieces = staging::piece_count(size);
  const std::uint64_t piece = wanted.unit / staging::kUnitsOfPiece;
  if (piece >= pieces) return std::nullopt;
  return WantedUnit{file, first + piece, first + pieces, pieces > 1, wanted.unit};
}

}  // namespace spark::fleet
