// The body of a unit. A piece is its bytes. A pack is a table of 17 bytes for each file (1 and the big-endian
// digest if the file is included, else 0), then the contents of the included files in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "fleet/protocol/layout.hpp"
#include "staging/manifest/hash.hpp"

namespace spark::fleet {

inline constexpr std::size_t kTableEntry = 17;
inline constexpr std::size_t kUnitBuffer = kPackBytes + 2 * kMiB;  // a pack, its table, and one file in
                                                                   // transfer

inline void put_digest(std::byte* to, const staging::Digest& digest) {
  std::uint64_t halves[2] = {digest.high, digest.low};
  for (int i = 15; i >= 0; --i) {
    to[i] = static_cast<std::byte>(halves[i / 8] & 255);
    halves[i / 8] >>= 8;
  }
}

inline staging::Digest get_digest(const std::byte* from) {
  std::uint64_t halves[2] = {};
  for (int i = 0; i < 16; ++i) halves[i / 8] = halves[i / 8] << 8 | std::to_integer<std::uint64_t>(from[i]);
  return {halves[0], halves[1]};
}

}  // namespace spark::fleet
