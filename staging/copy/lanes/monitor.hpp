// Watches a run from the caller's thread: reports progress about four times a second, and how far MemFree
// fell.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <string>
#include <utility>

#include "base/threads.hpp"
#include "base/units.hpp"
#include "staging/copy/lanes/pace.hpp"
#include "staging/copy/lanes/progress.hpp"

namespace spark::staging {

// Counted by all threads of a run.
struct Counters {
  std::atomic<Bytes> bytes_done{0}, bytes_total{0};
  std::atomic<std::uint64_t> files_done{0}, files_total{0};
  std::atomic<Bytes> bytes_resumed{0};     // part of bytes_done: taken over from an earlier attempt
  std::atomic<Bytes> bytes_from_peers{0};  // part of bytes_done: received from other hosts
  std::atomic<std::uint64_t> files_resumed{0};
  std::array<std::atomic<std::uint64_t>, kActivities> spent_ns{};

  void spent(Activity on, std::chrono::nanoseconds time) {
    spent_ns[static_cast<std::size_t>(on)] += static_cast<std::uint64_t>(time.count());
  }
};

class Monitor {
 public:
  explicit Monitor(const ProgressSink& sink);

  Counters counters;

  // Runs `work` in a separate thread while the calling thread reports; without reports in the calling thread
  // if no thread can be created. `work` returns a Result; an exception becomes an error.
  template <class Work>
  auto during(CopyPhase phase, Work work) {
    phase_ = phase;
    pace_ = Pace();
    report();
    auto result = std::async(std::launch::async | std::launch::deferred,
                             [work = std::move(work)] { return no_throw(work); });
    while (result.wait_for(std::chrono::milliseconds(250)) == std::future_status::timeout) report();
    report();
    return result.get();
  }

  // Called by the work's thread: the reason why it waits; empty ends the wait.
  void set_reason(std::string reason);

  double seconds() const;
  Bytes memfree_drop() const { return memfree_at_start_ - memfree_lowest_; }

 private:
  const ProgressSink& sink_;
  CopyPhase phase_ = CopyPhase::Walking;
  std::chrono::steady_clock::time_point start_;
  Bytes memfree_at_start_, memfree_lowest_;
  Pace pace_;
  std::mutex reason_mutex_;
  std::string reason_;
  void report();
  PaceSample sample(const CopyProgress& progress) const;
};

}  // namespace spark::staging
