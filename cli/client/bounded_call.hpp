// Work that may block in the kernel where nothing can cancel it, kept out of this process.
#pragma once

#include <functional>

#include "base/json.hpp"
#include "base/units.hpp"

namespace spark::cli {

// As run_apart(); when this process dies, the child ends its work alone. For programs with one thread.
Result<json::object> call_bounded(Duration deadline, const std::function<Result<json::object>()>& work);

}  // namespace spark::cli
