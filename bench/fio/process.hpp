// The benchmark's two kinds of child: fio, and a forked copy of this program that touches a path (run_apart).
// On a dead path either may hang in the kernel.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/apart.hpp"
#include "base/json.hpp"
#include "base/threads.hpp"
#include "base/units.hpp"
#include "bench/fio/fio_output.hpp"

namespace spark::bench {

struct FioRun {
  std::vector<std::string> command;
  Duration deadline{};
  const StopFlag* stop = nullptr;  // checked every 200 ms; null: can't be interrupted
  // Called with each cumulative status object, about one per second with --status-interval=1.
  std::function<void(const json::object&)> on_status;
};

// Runs fio until its end, its deadline, or `stop`. Returns an Error only if fio could not be started.
Result<FioEnd> run_fio(const FioRun& run);

// For work in a child process (run_apart) on a path, which may hang in the kernel.
ApartOptions on_path(std::string doing, Duration deadline, const StopFlag* stop);

}  // namespace spark::bench
