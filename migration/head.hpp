// The comments at the top of an imported configuration.
#pragma once

#include <string>
#include <vector>

#include "migration/import.hpp"

namespace spark::host {

// The comments above the configuration: its sources, the files that were not read, and the items without an
// entry.
std::string head_text(const Survey& survey, const std::vector<Item>& items, WallTime now);

}  // namespace spark::host
