// What an operator wants of a volume: it stays down through restarts, upgrades and reboots until an operator
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
  std::string by{};  // who took it down: "alice", "uid 0"
  // Unmounted and disconnected since. Without it, a crash came in between, and the daemon does so at its
  // start; what is mounted or connected after it is another's.
  bool is_released = false;
};

json::object to_json(const Intent& intent);
// Invalid: it says neither.
Result<Intent> intent_from_json(const json::object& object);

}  // namespace spark::volumes
