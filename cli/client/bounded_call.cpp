#include "cli/client/bounded_call.hpp"

#include "base/apart.hpp"

namespace spark::cli {

Result<json::object> call_bounded(Duration deadline, const std::function<Result<json::object>()>& work) {
  ApartOptions options;
  options.deadline = deadline;
  options.outlives_parent = true;
  return run_apart(options, work);
}

}  // namespace spark::cli
