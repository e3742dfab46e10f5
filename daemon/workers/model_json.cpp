#include "daemon/workers/model_json.hpp"

#include "daemon/config/parse.hpp"

namespace spark::workers {

json::object to_json(const config::ModelSettings& model) {
  return {{"name", model.name},
          {"revision", model.revision},
          {"include", json::array(model.include.begin(), model.include.end())},
          {"check", config::to_string(model.check)},
          {"expect", model.expect}};
}

json::object adopted_to_json(const config::Dataset& dataset) {
  json::object folder{{"dataset", dataset.name},
                      {"path", dataset.path},
                      {"exclude", json::array(dataset.exclude.begin(), dataset.exclude.end())},
                      {"links", config::to_string(dataset.links)}};
  if (dataset.model) folder["model"] = to_json(*dataset.model);
  return folder;
}

std::optional<staging::ModelOptions> model_of(const json::object& request) {
  const json::object* model = get_object(request, "model");
  if (model == nullptr) return std::nullopt;
  return staging::ModelOptions{
      get_text(*model, "name"), get_text(*model, "revision"), get_strings(*model, "include"),
      staging::model_check_of(get_text(*model, "check")), get_text(*model, "expect")};
}

void add_model(const std::optional<staging::ModelInCache>& model, json::object& to) {
  if (!model) return;
  const staging::ModelRecord& record = model->record;
  to["model"] = record.name;
  to["revision"] = or_null(record.revision);
  to["checked"] =
      json::object{{"sha256", record.sha256}, {"git_sha1", record.git_sha1}, {"none", record.none}};
  to["absent_files"] = record.absent;
  const std::string& pin = record.pin.empty() ? record.expect : record.pin;
  to["pin"] = or_null(pin);
  if (model->hub_cache.empty()) return;
  to["hub_cache"] = model->hub_cache.native();
  to["hub_folder"] = record.hub_folder;
}

}  // namespace spark::workers
