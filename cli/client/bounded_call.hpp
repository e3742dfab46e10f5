// Work that may block in the kernel where nothing can cancel it, kept out of this process.
#pragma once

#include <functional>

#include "base/json.hpp"
#include "base/units.hpp"

namespace spark::cli {

// Runs `work` in a forked child and gives its answer. TimedOut past the deadline: the child is killed, and if
// it can't die now it is left to init. When this process dies the child ends its work alone. For programs
// with one thread.
Result<json::object> call_bounded(Duration deadline, const std::function<Result<json::object>()>& work);

}  // namespace spark::cli
