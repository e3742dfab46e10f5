// Checkpoints of this host's outputs that are not on their volumes when a job ends.
#pragma once

#include "cli/context.hpp"

namespace spark::cli {

// Longest answer to a question about one output: the daemon first flushes a new checkpoint, and lists those
// on the volume.
inline constexpr Duration kOutputPatience{330'000};

// A line on stderr, with the reason, for each output without its newest checkpoint on the volume. Outputs
// that can't be queried are left out, so that the job's own result does not change.
void tell_unsent(Context& context);

}  // namespace spark::cli
