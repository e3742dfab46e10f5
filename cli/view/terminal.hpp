// The properties of stdout and stderr, from the kernel and the environment.
#pragma once

namespace spark::cli {

// The properties of the output's destination.
struct Terminal {
  bool out = false, err = false;  // is it a terminal?
  unsigned columns = 80;
  bool colour = false;   // of stdout
  bool redraws = false;  // stdout: the cursor can be moved
  unsigned rows = 24;
  bool is_quiet = false;  // neither progress nor notes on stderr
};

// Of two file descriptors, with $TERM and $NO_COLOR as they are now.
Terminal look_at_terminal(int out, int err);

}  // namespace spark::cli
