// Slurm's notation for several nodes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spark::fleet {

inline constexpr std::size_t kMostNodes = 256;

// "spark[1-3,07],head" → spark1, spark2, spark3, spark07, head. Empty if it is not such a list or names more
// than kMostNodes: a staging does without.
std::vector<std::string> expand_node_list(std::string_view text);

}  // namespace spark::fleet
