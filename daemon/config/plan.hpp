// What a new configuration changes for each volume, and what that costs it. Pure: the preview and the reload
// make the same plan.
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
  SetLive,    // on the connection and the mount that are there
  Remount,    // unmounted and mounted anew, over the same connection
  Reconnect,  // unmounted and disconnected, connected and mounted anew
  Add,
  Remove,  // unmounted and disconnected
};
const char* to_string(Action action);
// Its users would lose their files: it waits until there are none.
bool takes_mount_away(Action action);
bool takes_mount_away(std::string_view action);  // by its word

// A volume as it is in force, which need not be as in the file that was read last: what was refused then
// stays.
struct InForce {
  std::string volume;                            // its name
  json::object settings, target;                 // as to_json() shows them; no target for NFS
  std::string filesystem_type, filesystem_uuid;  // of what is mounted; empty: not known
};

struct Step {
  std::string volume;
  Action action = Action::Nothing;
  std::vector<std::string> changes;  // "keep_alive: 5s -> 10s"
  std::string refused;               // a sentence: why it is not done; empty: it is
};

struct Plan {
  std::vector<Step> volumes;          // in the new file's order, then what is not in it any more
  std::vector<std::string> settings;  // of the cache and the datasets; they cost nothing
};

std::vector<Step> plan_volumes(const std::vector<InForce>& in_force, const Config& wanted);
// Of the cache, the datasets and the metrics; `in_force` as to_json() shows it.
std::vector<std::string> changed_settings(const json::object& in_force, const Config& wanted);

json::object to_json(const Plan& plan);

// For the worker that makes the plan.
json::object to_json(const InForce& one);
InForce in_force_from_json(const json::object& object);

}  // namespace spark::config
