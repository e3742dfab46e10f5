// How fast a run goes, when it will end, and what holds it back: from counters read a few times a second.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/units.hpp"

namespace spark::staging {

// What a run's buffers and threads spend their time on.
enum class Activity { Source, LocalDrive, SmallFiles, Hash, Throttle, Peers };
inline constexpr std::size_t kActivities = 6;
std::string name_of(Activity activity);  // "source", "local drive", "small files", …

// What was counted up to a moment.
struct PaceSample {
  double seconds = 0;                     // since the start
  Bytes bytes_moved = 0, bytes_left = 0;  // what an earlier attempt left is neither
  std::uint64_t files_moved = 0, files_left = 0;
  std::array<std::uint64_t, kActivities> spent_ns{};
};

// Of one phase: counters never go back.
class Pace {
 public:
  void add(const PaceSample& sample);

  Bytes bytes_per_second() const { return bytes_per_second_; }  // over the last seconds
  // Never more than it was before, as long as the run keeps its pace; none at the start, and while it stalls.
  std::optional<double> eta_s() const { return eta_s_; }
  std::string bottleneck() const { return bottleneck_; }  // empty: nothing was done lately

 private:
  std::deque<PaceSample> recent_;
  Bytes bytes_per_second_ = 0;
  std::optional<double> eta_s_;
  double held_since_ = 0;  // since when the estimate has been far above what is shown
  std::string bottleneck_;

  void estimate(const PaceSample& now, double work_per_second);
  void blame();
};

}  // namespace spark::staging
