// The comments at the top of an imported configuration.
#pragma once

#include <string>
#include <vector>

#include "migration/import.hpp"

namespace spark::host {

// Where it comes from, what was not read, and what has no entry in it with a comment of its own.
std::string head_text(const Survey& survey, const std::vector<Item>& items, WallTime now);

}  // namespace spark::host
