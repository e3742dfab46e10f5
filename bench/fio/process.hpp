// The benchmark's two kinds of child: fio, and a forked copy of this program that touches a path. On a dead
// path either may hang in the kernel; it is killed after its deadline, or abandoned if the kill has no
// effect.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/described.hpp"
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

struct ApartOptions {
  std::string doing;  // "preparing /mnt/a", for the error message
  Duration deadline{};
  const StopFlag* stop = nullptr;
  std::function<void()> on_wait = {};  // about every 200 ms
};

// Runs `work` in a forked child and returns its result; for system calls on a path that may never return.
// TimedOut if the child hangs (it is killed, or abandoned if the kill has no effect); Cancelled on `stop`.
// The caller's other threads don't exist in `work`.
Result<json::value> run_apart(const ApartOptions& options, const std::function<Result<json::value>()>& work);

// The same for work that results in a message (base/described.hpp), or in nothing.
template <class Work>
requires(!std::is_same_v<std::invoke_result_t<Work>, Result<json::value>>)
    std::invoke_result_t<Work> run_apart(const ApartOptions& options, const Work& work) {
  using Message = typename std::invoke_result_t<Work>::value_type;
  const auto answer = run_apart(options, [&]() -> Result<json::value> {
    auto done = work();
    if (!done) return done.take_error();
    if constexpr (std::is_void_v<Message>) {
      return json::value();
    } else {
      return json::value(to_message(*done));
    }
  });
  if (!answer) return answer.take_error();
  if constexpr (std::is_void_v<Message>) {
    return {};
  } else {
    return from_message<Message>(answer->is_object() ? answer->get_object() : json::object());
  }
}

}  // namespace spark::bench
