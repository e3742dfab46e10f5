// docs/api.md as calls: JSON out of an answer, the daemon's own words out of an error.
#pragma once

#include "base/json.hpp"
#include "cli/client/client.hpp"

namespace spark::cli {

// The body of a 2xx answer. Any other answer is the error that stands in it.
Result<json::object> call(Client& client, const Request& request);
Result<json::object> object_of(const Answer& answer, const Request& request);

// One segment of a path: everything but letters, digits and -._~ as %XX.
std::string percent_encoded(std::string_view segment);

}  // namespace spark::cli
