#include "staging/copy/lanes/monitor.hpp"

#include <algorithm>

#include "staging/files/io/meminfo.hpp"

namespace spark::staging {
namespace {

Bytes read_memfree() {
  return read_meminfo(SystemRoot{}, "MemFree");
}

// The counters are read one after the other while other threads change them.
std::uint64_t minus(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : 0;
}

}  // namespace

Monitor::Monitor(const ProgressSink& sink)
    : sink_(sink),
      start_(std::chrono::steady_clock::now()),
      memfree_at_start_(read_memfree()),
      memfree_lowest_(memfree_at_start_) {}

void Monitor::set_reason(std::string reason) {
  const std::scoped_lock lock(reason_mutex_);
  reason_ = std::move(reason);
}

double Monitor::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

PaceSample Monitor::sample(const CopyProgress& progress) const {
  PaceSample now;
  now.seconds = progress.seconds;
  now.bytes_moved = minus(progress.bytes_done, counters.bytes_resumed);
  now.bytes_left = minus(progress.bytes_total, progress.bytes_done);
  now.files_moved = minus(progress.files_done, counters.files_resumed);
  now.files_left = minus(progress.files_total, progress.files_done);
  for (std::size_t i = 0; i < kActivities; ++i) now.spent_ns[i] = counters.spent_ns[i];
  return now;
}

void Monitor::report() {
  memfree_lowest_ = std::min(memfree_lowest_, read_memfree());
  if (!sink_) return;
  CopyProgress progress;
  progress.phase = phase_;
  progress.bytes_done = counters.bytes_done;
  progress.bytes_total = counters.bytes_total;
  progress.bytes_from_peers = counters.bytes_from_peers;
  progress.bytes_from_volume =
      minus(minus(progress.bytes_done, counters.bytes_resumed), progress.bytes_from_peers);
  progress.files_done = counters.files_done;
  progress.files_total = counters.files_total;
  progress.seconds = seconds();
  pace_.add(sample(progress));
  progress.bytes_per_second = pace_.bytes_per_second();
  progress.eta_s = pace_.eta_s();
  progress.bottleneck = pace_.bottleneck();
  // A verification reads the copy, not the source.
  if (phase_ == CopyPhase::Verifying && progress.bottleneck == name_of(Activity::Source))
    progress.bottleneck = name_of(Activity::LocalDrive);
  {
    const std::scoped_lock lock(reason_mutex_);
    progress.reason = reason_;
  }
  sink_(progress);
}

}  // namespace spark::staging
