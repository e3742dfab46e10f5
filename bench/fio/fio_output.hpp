// Parses fio's output into a result, or into the reasons why it is invalid. Handles fio's behaviour (fixtures
// from field tests in tests/unit/bench/fixtures): consecutive JSON objects with noise between them, and an
// exit status that overrides the object's own `error`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "bench/record/measured.hpp"

namespace spark::bench {

// Splits fio's stdout incrementally into complete objects and the lines around them.
class FioStream {
 public:
  // The objects that `bytes` completed, in order. Invalid JSON is treated as noise.
  std::vector<json::object> feed(std::string_view bytes);

  const std::string& noise() const { return noise_; }
  // True if an object has begun but not ended; at the end of the output, it was cut.
  bool is_inside_object() const { return depth_ > 0; }

 private:
  void take(char c, std::vector<json::object>& done);

  std::string object_, noise_;
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false;
};

// How a fio process ended.
struct FioEnd {
  int exit_status = 0;
  bool timed_out = false;            // killed after its deadline
  bool stopped = false;              // ended at the user's request
  bool abandoned = false;            // killed but still not ended: it hangs in the kernel
  bool cut = false;                  // its output ends inside an object
  std::optional<json::object> last;  // cumulative: the last object covers the whole run
  std::string words;                 // all non-JSON text of both outputs
};

enum class Direction { Read, Write };

// Cumulative counters of one object, summed over all jobs.
Measured counters_of(const json::object& fio, Direction direction);

// The reasons why this run is invalid; empty if it is valid. `asked_seconds` is the requested runtime of a
// time-based job, 0 if the job ends by size.
std::vector<std::string> faults_of(const FioEnd& end, Direction direction, double asked_seconds);

// fio's messages without repetition, control characters escaped, at most about 300 bytes from the end.
std::string tail_of(std::string_view words);

}  // namespace spark::bench
