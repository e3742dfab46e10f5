// To multiples of a block.
#pragma once

#include "base/units.hpp"

namespace spark {

constexpr Bytes round_down(Bytes value, Bytes to) {
  return value - value % to;
}
constexpr Bytes round_up(Bytes value, Bytes to) {
  return round_down(value + to - 1, to);
}

}  // namespace spark
