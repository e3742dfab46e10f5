// The command line of a history machine; see docs/testing.md.
#pragma once

#include "tests/histories/engine/history.hpp"

namespace spark::histories {

// Runs histories, shrinks the ones that fail, replays. `found` is the folder of histories that once failed,
// each with a line "# open: …" while its defect is not fixed, else "# fixed: …", and "# oracle: NAME".
int history_main(const Area& area, int argc, char** argv);

}  // namespace spark::histories
