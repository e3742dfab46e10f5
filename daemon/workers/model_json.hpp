// A model, and an adopted folder, in requests and answers of workers.
#pragma once

#include <optional>

#include "base/json.hpp"
#include "daemon/config/model.hpp"
#include "staging/cache/cache.hpp"

namespace spark::workers {

json::object to_json(const config::ModelSettings& model);

// Of a dataset with `adopt`: {"dataset", "path", "exclude", "links", "model"?: see model_of}
json::object adopted_to_json(const config::Dataset& dataset);

// "model"?: {"name", "revision", "include", "check", "expect"}
std::optional<staging::ModelOptions> model_of(const json::object& request);

// Adds "model", "revision", "checked", "absent_files", "hub_cache" and "hub_folder" of a copy of a model.
void add_model(const std::optional<staging::ModelInCache>& model, json::object& to);

}  // namespace spark::workers
