// Which targets of a configuration are one.
#pragma once

#include <algorithm>

#include "daemon/config/model.hpp"

namespace spark::config {

// By name, or by an address that both have: its controllers are those of both then.
inline bool is_same_target(const Target& one, const Target& other) {
  return one.name == other.name || std::ranges::any_of(one.portals, [&](const nvmetcp::Portal& portal) {
           return std::ranges::find(other.portals, portal) != other.portals.end();
         });
}

}  // namespace spark::config
