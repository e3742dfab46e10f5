// Copies read back by the daemon at idle priority: `verify --all`.
#pragma once

#include <string>
#include <vector>

#include "cli/context.hpp"

namespace spark::cli {

// These, or all for no names. 6: one is damaged, and is no longer served; 1: one could not be read.
Result<int> scrub(Context& context, const std::vector<std::string>& datasets, bool as_json);

}  // namespace spark::cli
