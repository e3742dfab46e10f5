// A worker of the daemon: a process that runs one of its verbs, and goes on only when the history says so.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "base/file.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "tests/histories/copies/worker/fault.hpp"

namespace spark::histories::copies {

struct Assignment {
  std::string verb;
  json::object request;
  Fault fault{};
};

// Where a worker stopped.
struct Stop {
  enum class Kind { Answered, Sleeps, HeldUp, Died, Hangs };
  Kind kind = Kind::Died;
  Result<json::object> answer{json::object{}};  // for Answered
  std::chrono::nanoseconds sleep{0};            // for Sleeps
  bool is_by_state = false;                     // for HeldUp: see arm()
  // How the process ended, if that is a defect: "it answered, and then ended by signal 11". Empty: as
  // planned.
  std::string crash;
};

class Worker {
 public:
  explicit Worker(const Assignment& assignment);
  ~Worker();  // kills it if it has not ended
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Runs it until its next stop, in no virtual time. `progress` gets what it reports.
  Stop go_on(const std::function<void(const json::object&)>& progress);
  void kill();

 private:
  std::optional<std::string> read_line();  // none: it has ended
  int end();                               // its wait status

  pid_t pid_ = -1;
  UniqueFd channel_;
  std::string buffered_;
  Fault::Kind fault_;
  bool hangs_ = false;
};

}  // namespace spark::histories::copies
