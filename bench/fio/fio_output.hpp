// What fio printed, made into a result or a reason why it is none. Knows fio's habits (field tests in
// tests/unit/bench/fixtures): JSON objects one after another, noise between them, and an exit status that
// counts for more than the object's own `error`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/units.hpp"
#include "bench/record/histogram.hpp"

namespace spark::bench {

// Splits fio's stdout, as it arrives, into complete objects and the lines around them.
class FioStream {
 public:
  // The objects that `bytes` completed, in order. One that isn't JSON goes to the noise.
  std::vector<json::object> feed(std::string_view bytes);

  const std::string& noise() const { return noise_; }
  // An object was begun and not finished: the output was cut.
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
  bool timed_out = false;            // killed past its deadline
  bool stopped = false;              // ended because the user asked
  bool abandoned = false;            // killed and still not gone: it hangs in the kernel
  bool cut = false;                  // its output ends inside an object
  std::optional<json::object> last;  // cumulative: the final one is the whole run
  std::string words;                 // everything it said that is not JSON, both outputs
  std::vector<std::string> command;
};

enum class Direction { Read, Write };

// Cumulative counters of one object, all jobs together.
struct FioCounters {
  Bytes bytes = 0;
  double seconds = 0;  // of the longest job
  std::uint64_t ios = 0;
  double cpu_seconds = 0;  // fio's own, user and system; kernel threads are not in it
  Bins bins;
};
FioCounters counters_of(const json::object& fio, Direction direction);

// Why this run is no result, in words; empty if it is one. `asked_seconds`: the time-based runtime asked for,
// 0 if the job ends by size.
std::vector<std::string> faults_of(const FioEnd& end, Direction direction, double asked_seconds);

// fio's words without repetition and with control characters made visible, at most ~300 bytes from the end.
std::string tail_of(std::string_view words);

}  // namespace spark::bench
