// The two kinds of child that the benchmark starts: fio, and a copy of ourselves that touches a path for us.
// Both may hang in the kernel when a path is dead; both are killed past a deadline, or left behind.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/threads.hpp"
#include "base/units.hpp"
#include "bench/fio/fio_output.hpp"

namespace spark::bench {

struct FioRun {
  std::vector<std::string> command;
  Duration deadline{};
  const StopFlag* stop = nullptr;  // seen within 200 ms; null: can't be interrupted
  // Each cumulative status object as it arrives, about one a second with --status-interval=1.
  std::function<void(const json::object&)> on_status;
};

// Runs fio to its end, its deadline, or `stop`. An Error only if it could not be started.
Result<FioEnd> run_fio(const FioRun& run);

struct ApartOptions {
  std::string doing;  // "preparing /mnt/a", for the error
  Duration deadline{};
  const StopFlag* stop = nullptr;
  std::function<void()> on_wait = {};  // about every 200 ms
};

// Runs `work` in a forked child and returns its answer: for system calls on a path that may never return.
// TimedOut when it hangs (it is killed, or left behind if even that hangs); Cancelled on `stop`.
// The caller's other threads don't exist in `work`.
Result<json::value> run_apart(const ApartOptions& options, const std::function<Result<json::value>()>& work);

}  // namespace spark::bench
