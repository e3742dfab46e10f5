// An operator's intent for a volume: it stays down through restarts, upgrades and reboots until an operator
// brings it up again.
#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/result.hpp"

namespace spark::volumes {

struct Intent {
  bool up = true;
  WallTime since{};  // when it was taken down
  std::string by{};  // the operator: "alice", "uid 0"
  // Unmounted and disconnected since. If unset, the daemon was interrupted before, and releases the volume at
  // its start. Once set, a later mount or connection belongs to another program.
  bool is_released = false;
};

json::object to_json(const Intent& intent);
// Invalid if it is neither up nor down.
Result<Intent> intent_from_json(const json::object& object);

}  // namespace spark::volumes
