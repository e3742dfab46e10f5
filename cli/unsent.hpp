// Checkpoints of this host's outputs that are not on their volumes when a job ends.
#pragma once

#include <string>
#include <vector>

#include "cli/context.hpp"

namespace spark::cli {

// Longest answer to a question about one output: the daemon first flushes a new checkpoint, and lists those
// on the volume.
inline constexpr Duration kOutputPatience{330'000};

// The names of the configured outputs; none if the daemon can't say.
std::vector<std::string> output_names(Context& context);

// A line on stderr, with the reason, for each of these outputs without its newest checkpoint on the volume.
// Outputs that can't be queried are left out.
void tell_unsent(Context& context, const std::vector<std::string>& outputs);

}  // namespace spark::cli
