// Work in a forked copy of this program: for system calls that may never return, as on a path or a drive that
// does not answer.
#pragma once

#include <functional>
#include <string>
#include <type_traits>

#include "base/described.hpp"
#include "base/json.hpp"
#include "base/threads.hpp"
#include "base/units.hpp"

namespace spark {

struct ApartOptions {
  std::string doing;  // "preparing /mnt/a", for the messages; may be empty
  Duration deadline{};
  const StopFlag* stop = nullptr;      // checked every 200 ms; null: can't be interrupted
  std::string hint = {};               // if it hangs
  std::function<void()> on_wait = {};  // about every 200 ms
  // When this process dies, the work goes on until its deadline, as it removes what it has made in the
  // kernel.
  bool outlives_parent = false;
};

// The result of `work`, in which the caller's other threads don't exist. TimedOut if it hangs: it is killed,
// or abandoned if it can't die now. Cancelled on `stop`.
Result<json::value> run_apart(const ApartOptions& options, const std::function<Result<json::value>()>& work);

// The same for work that results in an object, in what a message may have (base/described.hpp), or in
// nothing.
template <class Work>
requires(!std::is_same_v<std::invoke_result_t<Work>, Result<json::value>>)
    std::invoke_result_t<Work> run_apart(const ApartOptions& options, const Work& work) {
  using Value = typename std::invoke_result_t<Work>::value_type;
  const auto answer = run_apart(options, [&]() -> Result<json::value> {
    auto done = work();
    if (!done) return done.take_error();
    if constexpr (std::is_void_v<Value>) {
      return json::value();
    } else {
      return described::to_value(*done);
    }
  });
  if (!answer) return answer.take_error();
  if constexpr (std::is_void_v<Value>) {
    return {};
  } else if constexpr (std::is_same_v<Value, json::object>) {
    return answer->is_object() ? answer->get_object() : json::object();
  } else {
    return from_message<Value>(*answer);
  }
}

}  // namespace spark
