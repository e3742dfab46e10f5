// What a job leaves behind: checkpoints of this host's outputs that are not on their volumes when it ends.
#pragma once

#include "cli/context.hpp"

namespace spark::cli {

// A line on stderr for each output whose newest checkpoint is not on its volume, and why. What can't be asked
// is left out: the job's own result is not changed by it.
void tell_unsent(Context& context);

}  // namespace spark::cli
