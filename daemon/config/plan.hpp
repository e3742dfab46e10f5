// The changes that a new configuration makes to each volume, and their effect on its users. Pure functions:
// the preview and the reload make the same plan.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "daemon/config/model.hpp"

namespace spark::config {

enum class Action {
  Nothing,
  SetLive,    // on the existing connection and mount
  Remount,    // unmounted and remounted, over the same connection
  Reconnect,  // unmounted and disconnected, then reconnected and remounted
  Add,
  Remove,  // unmounted and disconnected
};
const char* to_string(Action action);
// Its users would lose their files, so it waits until there are none.
bool takes_mount_away(Action action);
bool takes_mount_away(std::string_view action);  // by its name

// A volume as it is in force. That may differ from the file read last, if the change was refused.
struct InForce {
  std::string volume;                            // its name
  json::object settings, target;                 // as to_json() returns them; no target for NFS
  std::string filesystem_type, filesystem_uuid;  // of the mounted file system; empty means unknown
};

struct Step {
  std::string volume;
  Action action = Action::Nothing;
  std::vector<std::string> changes;  // "keep_alive: 5s -> 10s"
  std::string refused;               // a sentence: why the step is not done; empty means that it is
};

struct Plan {
  std::vector<Step> volumes;          // in the new file's order, then the volumes removed from it
  std::vector<std::string> settings;  // of the cache and the datasets; these changes disturb no user
};

std::vector<Step> plan_volumes(const std::vector<InForce>& in_force, const Config& wanted);
// Changes of the cache, the datasets and the metrics; `in_force` as to_json() returns it.
std::vector<std::string> changed_settings(const json::object& in_force, const Config& wanted);

json::object to_json(const Plan& plan);

// For the worker that makes the plan.
json::object to_json(const InForce& one);
InForce in_force_from_json(const json::object& object);

}  // namespace spark::config
