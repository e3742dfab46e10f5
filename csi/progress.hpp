// Formats the progress of a staging for the events of the waiting pod.
#pragma once

#include <string>

#include "base/json.hpp"

namespace spark::csi {

// "imagenet: 62 %, 3 min left", from a PROGRESS object of the API (docs/api.md).
std::string progress_in_words(const std::string& dataset, const json::object& progress);

}  // namespace spark::csi
