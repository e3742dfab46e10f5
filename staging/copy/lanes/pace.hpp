// A run's rate, its estimated end and its bottleneck, computed from counters that are read a few times a
// second.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/units.hpp"

namespace spark::staging {

// The activities of a run's buffers and threads.
enum class Activity { Source, LocalDrive, SmallFiles, Hash, Throttle, Peers };
inline constexpr std::size_t kActivities = 6;
std::string name_of(Activity activity);  // "source", "local drive", "small files", …

// Files and their bytes, as bytes of a large file that take as long: a thousand empty files are 64 MB.
double work(Bytes bytes, std::uint64_t files);

// The counters at one moment.
struct PaceSample {
  double seconds = 0;                     // since the start
  Bytes bytes_moved = 0, bytes_left = 0;  // without bytes taken over from an earlier attempt
  std::uint64_t files_moved = 0, files_left = 0;
  std::array<std::uint64_t, kActivities> spent_ns{};
};

// For one phase, in which counters never decrease.
class Pace {
 public:
  void add(const PaceSample& sample);

  Bytes bytes_per_second() const { return bytes_per_second_; }  // over the last seconds
  // Never increases while the run keeps its rate; none at the start, and while the run stalls.
  std::optional<double> eta_s() const { return eta_s_; }
  std::string bottleneck() const { return bottleneck_; }  // empty if nothing was done recently

 private:
  std::deque<PaceSample> recent_;
  Bytes bytes_per_second_ = 0;
  std::optional<double> eta_s_;
  double held_since_ = 0;  // since when the estimate has been far above the reported value
  std::string bottleneck_;

  void estimate(const PaceSample& now, double work_per_second);
  void blame();
};

}  // namespace spark::staging
