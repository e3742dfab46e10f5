#include "cli/view/progress.hpp"

#include <algorithm>
#include <cmath>

namespace spark::cli {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds kWarmUp{2};          // no promise before that
constexpr Seconds kSmallestStep{0.2};  // between two measurements of the rate
constexpr Seconds kSmoothing{8};       // time constant of the rate's average
constexpr Seconds kStall{5};           // without a byte: stalled
constexpr Seconds kSlower{5};          // a worse promise is kept back that long
constexpr double kClearlyWorse = 1.25;

SteadyTime after(SteadyTime now, double seconds) {
  constexpr double kYear = 365 * 86400.0;
  return now + std::chrono::duration_cast<SteadyTime::duration>(Seconds(std::min(seconds, kYear)));
}

}  // namespace

Progress progress_from_json(const json::object& event) {
  Progress progress;
  progress.dataset = get_text(event, "dataset");
  progress.phase = get_text(event, "phase");
  progress.bytes_done = get_count(event, "bytes_done");
  progress.bytes_total = get_count(event, "bytes_total");
  progress.files_done = get_count(event, "files_done");
  progress.files_total = get_count(event, "files_total");
  progress.bytes_per_second = std::max(0.0, get_double(event, "bytes_per_second").value_or(0));
  progress.eta_s = get_double(event, "eta_s");
  progress.bottleneck = get_text(event, "bottleneck");
  progress.reason = get_text(event, "reason");
  progress.late_s = get_double(event, "late_s");
  return progress;
}

double part_done(const Progress& progress) {
  if (progress.bytes_total == 0) return 0;
  return std::min(1.0, static_cast<double>(progress.bytes_done) / static_cast<double>(progress.bytes_total));
}

std::string percent_done(const Progress& progress) {
  return std::to_string(static_cast<int>(std::floor(part_done(progress) * 100))) + " %";
}

std::optional<std::chrono::seconds> told_left(const Progress& progress) {
  if (!progress.eta_s) return std::nullopt;
  return std::chrono::seconds(static_cast<std::int64_t>(std::ceil(std::max(0.0, *progress.eta_s))));
}

void Eta::start_over(SteadyTime now, Bytes done, Bytes total) {
  *this = Eta();
  started_ = measured_ = moved_ = now;
  done_ = measured_done_ = done;
  total_ = total;
}

void Eta::update(SteadyTime now, Bytes done, Bytes total) {
  const bool moved = started_ && done != done_;
  const bool other_work = started_ && (total != total_ || done < done_);
  if (!started_ || other_work || (moved && is_stalled(now))) return start_over(now, done, total);
  if (moved) moved_ = now;
  done_ = done;
  const Seconds step = now - *measured_;
  if (step < kSmallestStep) return;
  const double current = static_cast<double>(done - measured_done_) / step.count();
  const double weight = rate_ == 0 ? 1 : 1 - std::exp(-step / kSmoothing);
  rate_ += (current - rate_) * weight;
  measured_ = now;
  measured_done_ = done;
  promise(now);
}

void Eta::promise(SteadyTime now) {
  if (now - *started_ < kWarmUp || rate_ <= 0) return;
  const double fresh = static_cast<double>(total_ - std::min(done_, total_)) / rate_;
  const double promised = promised_end_ ? Seconds(*promised_end_ - now).count() : fresh;
  const bool worse = fresh > promised * kClearlyWorse + 1;
  if (!worse) slower_since_.reset();
  if (worse && !slower_since_) slower_since_ = now;
  const bool admitted = worse && now - *slower_since_ >= kSlower;
  const bool overdue = promised < 1;
  if (!promised_end_ || fresh <= promised || admitted || overdue) {
    promised_end_ = after(now, fresh);
    slower_since_.reset();
  }
}

bool Eta::is_stalled(SteadyTime now) const {
  return moved_ && done_ < total_ && now - *moved_ >= kStall;
}

std::optional<std::chrono::seconds> Eta::left(SteadyTime now) const {
  if (!promised_end_ || is_stalled(now)) return std::nullopt;
  const double seconds = std::max(0.0, std::ceil(Seconds(*promised_end_ - now).count()));
  return std::chrono::seconds(static_cast<std::int64_t>(seconds));
}

}  // namespace spark::cli
