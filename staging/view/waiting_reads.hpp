// Reads whose units are missing. No thread waits for them: they are looked at again after each change.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "staging/view/view_reader.hpp"

namespace spark::staging {

struct WaitingRead {
  std::uint64_t id = 0;  // of the kernel's request
  ViewRange range;
  pid_t thread = 0;             // that reads; 0: none that can be looked at
  bool is_interrupted = false;  // a signal came for it
};

// Thread-safe.
class WaitingReads {
 public:
  void add(const WaitingRead& read) {
    const std::scoped_lock lock(mutex_);
    reads_.push_back(read);
  }

  // Removes and returns those for which `is_over` holds. It is called under the lock.
  template <class IsOver>
  std::vector<WaitingRead> take_if(const IsOver& is_over) {
    const std::scoped_lock lock(mutex_);
    const auto stay = std::stable_partition(reads_.begin(), reads_.end(),
                                            [&](const WaitingRead& read) { return !is_over(read); });
    std::vector<WaitingRead> over(stay, reads_.end());
    reads_.erase(stay, reads_.end());
    return over;
  }

  // Up to `most` of them, at most one of each thread; others at the next call.
  std::vector<ViewRange> some(std::size_t most) {
    const std::scoped_lock lock(mutex_);
    std::vector<ViewRange> ranges;
    std::set<pid_t> threads;
    std::optional<std::size_t> left_out;
    std::size_t i = next_;
    for (; i < next_ + reads_.size() && ranges.size() < most; ++i) {
      const WaitingRead& read = reads_[i % reads_.size()];
      if (threads.insert(read.thread).second) {
        ranges.push_back(read.range);
      } else if (!left_out) {
        left_out = i;
      }
    }
    next_ = left_out.value_or(i) % std::max<std::size_t>(1, reads_.size());
    return ranges;
  }

  // False if no such read waits: it is being answered.
  bool interrupt(std::uint64_t id) {
    const std::scoped_lock lock(mutex_);
    const auto found = std::ranges::find(reads_, id, &WaitingRead::id);
    if (found == reads_.end()) return false;
    found->is_interrupted = true;
    return true;
  }

  // The threads for which a signal came.
  std::set<pid_t> interrupted() const {
    const std::scoped_lock lock(mutex_);
    std::set<pid_t> threads;
    for (const WaitingRead& read : reads_)
      if (read.is_interrupted) threads.insert(read.thread);
    return threads;
  }

  std::size_t size() const {
    const std::scoped_lock lock(mutex_);
    return reads_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<WaitingRead> reads_;
  std::size_t next_ = 0;  // for some()
};

}  // namespace spark::staging
