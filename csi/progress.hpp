// How far a staging is, for the events of the pod that waits for it.
#pragma once

#include <string>

#include "base/json.hpp"

namespace spark::csi {

// "imagenet: 62 %, 3 min left" of a PROGRESS of the API (docs/api.md).
std::string progress_in_words(const std::string& dataset, const json::object& progress);

}  // namespace spark::csi
