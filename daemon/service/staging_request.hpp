// The request in the body of POST /v1/stagings.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "daemon/api/server.hpp"
#include "daemon/datasets/datasets.hpp"

namespace spark {

Result<datasets::StageRequest> read_staging(const api::Request& request);

// The names in "datasets"; empty if there is no such key.
Result<std::vector<std::string>> dataset_names(const json::object& body);

}  // namespace spark
