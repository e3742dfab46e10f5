// What stdout and stderr are: asked of the kernel and the environment.
#pragma once

#include "cli/context.hpp"

namespace spark::cli {

// Of two file descriptors, with $TERM and $NO_COLOR as they are now.
Terminal look_at_terminal(int out, int err);

}  // namespace spark::cli
