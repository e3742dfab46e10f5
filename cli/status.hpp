// The daemon's status: asked for, and the part of it that is about some names.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "cli/context.hpp"

namespace spark::cli {

// GET /v1/status (docs/api.md).
Result<json::object> ask_status(Context& context);

// GET /v1/volumes/NAME,NAME: the status's `volumes`, with these alone. NotFound, with the name that was
// meant.
Result<json::object> ask_volumes(Context& context, const std::vector<std::string>& names);

std::vector<std::string> volume_names(const json::object& status);

// A volume's object. NotFound, with the name that was meant.
Result<json::object> volume_of(const json::object& status, const std::string& name);

// The volumes and the work on datasets of these names, and nothing of the rest; all of it for no names.
// NotFound: a name is neither a volume's nor a dataset's that the daemon works on.
Result<json::object> about(json::object status, const std::vector<std::string>& names);

}  // namespace spark::cli
