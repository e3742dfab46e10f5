#include "daemon/config/parse.hpp"
#include "daemon/config/plan.hpp"
#include "daemon/workers/verbs/verbs.hpp"

namespace spark::workers {

// {"file", "yaml"?: replaces the file's content, "config": in force, "volumes": in force} → plan, with no
// step refused
Result<json::object> plan_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const std::string file = get_text(request, "file");
  const auto text = get_string(request, "yaml");
  const auto wanted = text ? config::parse(*text, file) : config::load(file);
  if (!wanted) return wanted.take_error();
  std::vector<config::InForce> in_force;
  for (const json::object& volume : objects_in(request, "volumes"))
    in_force.push_back(config::in_force_from_json(volume));
  const json::object* before = get_object(request, "config");
  config::Plan plan;
  plan.volumes = config::plan_volumes(in_force, *wanted);
  plan.settings = config::changed_settings(before == nullptr ? json::object{} : *before, *wanted);
  return to_json(plan);
}

}  // namespace spark::workers
