// Units: the parts of a copy in progress that readers see arriving.
#pragma once

#include <algorithm>
#include <cstdint>

#include "staging/manifest/hash.hpp"

namespace spark::staging {

// At 200 MB/s a piece takes 42 ms, and one that a reader waits for is behind others; a unit takes 5 ms.
inline constexpr Bytes kViewUnit = kMiB;
inline constexpr std::uint64_t kUnitsOfPiece = kHashPiece / kViewUnit;

// Units of one file.
struct UnitRange {
  std::uint64_t first = 0, count = 0;
};

// At least 1: an empty file has one empty unit.
inline std::uint64_t unit_count(Bytes size) {
  return std::max<std::uint64_t>(1, (size + kViewUnit - 1) / kViewUnit);
}

inline UnitRange units_of_piece(Bytes size, std::uint64_t piece) {
  return {piece * kUnitsOfPiece, unit_count(piece_bytes(size, piece))};
}

}  // namespace spark::staging
