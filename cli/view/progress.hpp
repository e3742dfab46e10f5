// How far one dataset is, and how long it still takes.
#pragma once

#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/units.hpp"

namespace spark::cli {

// A progress event of the API, or the same from a copy in this process.
struct Progress {
  std::string dataset;
  std::string phase;  // the API's word: queued, walking, copying, flushing, verifying, publishing, stalled
  Bytes bytes_done = 0, bytes_total = 0;
  std::uint64_t files_done = 0, files_total = 0;
  double bytes_per_second = 0;     // 0: not told
  std::optional<double> eta_s;     // as estimated by the copier; none: unknown
  std::string bottleneck;          // "source", "local drive", …; empty: not told
  std::string reason;              // why it is stalled, or the cause of a wait
  std::optional<double> late_s{};  // the delay of a prefetch past its deadline; none: in time
};

Progress progress_from_json(const json::object& event);

// 0 to 1; 0 also while the total is unknown.
double part_done(const Progress& progress);
// Rounded down: "100 %" only when it is all there.
std::string percent_done(const Progress& progress);
// As estimated by the copier, which knows more than a view: small files, data left to flush.
std::optional<std::chrono::seconds> told_left(const Progress& progress);

// The time left, from a smoothed rate. It counts down, and rises only after a stall, or when the
// rate has been clearly lower for seconds. Bytes present at the first update count as done, not as speed.
class Eta {
 public:
  void update(SteadyTime now, Bytes done, Bytes total);
  // No value: too early to say, or nothing moves.
  std::optional<std::chrono::seconds> left(SteadyTime now) const;
  bool is_stalled(SteadyTime now) const;
  double bytes_per_second() const { return rate_; }

 private:
  void start_over(SteadyTime now, Bytes done, Bytes total);
  void promise(SteadyTime now);

  std::optional<SteadyTime> started_, measured_, moved_, slower_since_;
  std::optional<SteadyTime> promised_end_;
  Bytes done_ = 0, measured_done_ = 0, total_ = 0;
  double rate_ = 0;  // bytes per second, smoothed
};

}  // namespace spark::cli
