// The command line of a history machine; see docs/testing.md.
#pragma once

#include "tests/histories/engine/history.hpp"

namespace spark::histories {

// Runs histories, shrinks the ones that fail, replays. Those that failed once are in the folder of
// --found (found.hpp).
int history_main(const Area& area, int argc, char** argv);

}  // namespace spark::histories
