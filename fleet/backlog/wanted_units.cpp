#include "fleet/backlog/wanted_units.hpp"

#include <algorithm>

#include "staging/manifest/units.hpp"

namespace spark::fleet {
namespace {

std::optional<WantedUnit> unit_of(const staging::WantedOfFile& wanted, const Layout& layout,
                                  const std::vector<staging::Entry*>& entry_of) {
  // By path: the entries are in a deque, and their addresses have no order.
  const auto path_of = [](const staging::Entry* entry) { return entry->path.view(); };
  const auto at = std::ranges::lower_bound(entry_of, wanted.entry->path.view(), {}, path_of);
  if (at == entry_of.end() || *at != wanted.entry) return std::nullopt;
  const auto file = static_cast<std::uint64_t>(at - entry_of.begin());
  const Bytes size = layout.size_of(file);
  if (Layout::is_packed(size)) {
    const std::uint64_t pack = layout.pack_of(file);
    return WantedUnit{file, pack, pack + 1, false, wanted.unit};
  }
  const std::uint64_t first = layout.first_unit_of(file), pieces = staging::piece_count(size);
  const std::uint64_t piece = wanted.unit / staging::kUnitsOfPiece;
  if (piece >= pieces) return std::nullopt;
  return WantedUnit{file, first + piece, first + pieces, pieces > 1, wanted.unit};
}

}  // namespace

std::optional<WantedUnit> take_wanted_unit(staging::Viewer& viewer, const Layout& layout,
                                           const std::vector<staging::Entry*>& entry_of) {
  for (const bool is_small : {false, true}) {
    while (const auto wanted = viewer.take_wanted(is_small))
      if (const auto unit = unit_of(*wanted, layout, entry_of)) return unit;
  }
  return std::nullopt;
}

}  // namespace spark::fleet
