#include "staging/copy/lanes/pace.hpp"

#include <algorithm>

namespace spark::staging {
namespace {

constexpr double kWindow = 5;         // seconds over which the rate is averaged
constexpr double kFirstEstimate = 1;  // seconds before the first estimate
constexpr double kDisbelief = 5;      // seconds before a much later end is reported
constexpr double kMuchLater = 1.5;
constexpr double kFileWeight = 64 * 1024;

}  // namespace

double work(Bytes bytes, std::uint64_t files) {
  return static_cast<double>(bytes) + kFileWeight * static_cast<double>(files);
}

std::string name_of(Activity activity) {
  constexpr std::array<const char*, kActivities> kNames = {"source", "local drive", "small files",
                                                           "hash",   "throttle",    "peers"};
  return kNames[static_cast<std::size_t>(activity)];
}

void Pace::add(const PaceSample& sample) {
  recent_.push_back(sample);
  while (recent_.size() > 2 && recent_[1].seconds <= sample.seconds - kWindow) recent_.pop_front();
  const PaceSample& before = recent_.front();
  const double seconds = sample.seconds - before.seconds;
  if (seconds <= 0) return;
  const Bytes moved = sample.bytes_moved - std::min(sample.bytes_moved, before.bytes_moved);
  const std::uint64_t files = sample.files_moved - std::min(sample.files_moved, before.files_moved);
  bytes_per_second_ = static_cast<Bytes>(static_cast<double>(moved) / seconds);
  estimate(sample, work(moved, files) / seconds);
  blame();
}

void Pace::estimate(const PaceSample& now, double work_per_second) {
  const double left = work(now.bytes_left, now.files_left);
  if (now.seconds < kFirstEstimate || work_per_second <= 0) {
    eta_s_.reset();
    held_since_ = now.seconds;
    return;
  }
  const double estimated = left / work_per_second;
  if (!eta_s_ || estimated <= *eta_s_ * kMuchLater) held_since_ = now.seconds;
  if (!eta_s_ || estimated < *eta_s_ || now.seconds - held_since_ > kDisbelief) eta_s_ = estimated;
}

void Pace::blame() {
  std::array<std::uint64_t, kActivities> spent{};
  for (std::size_t i = 0; i < kActivities; ++i)
    spent[i] = recent_.back().spent_ns[i] - recent_.front().spent_ns[i];
  const auto most = std::ranges::max_element(spent);
  bottleneck_ = *most == 0 ? "" : name_of(static_cast<Activity>(most - spent.begin()));
}

}  // namespace spark::staging
