// How many pieces of files may be under way at a time. A crash costs what was copied of an unfinished piece:
// with many of them beside each other a slow run would have much of it, and nothing in its journal.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace spark::staging {

// Called from any thread.
class PieceLimit {
 public:
  explicit PieceLimit(SteadyTime now) : since_(now) {}
  void moved(Bytes bytes, SteadyTime now);
  std::uint64_t most() const { return most_; }  // what the run moves in half a second, but two at least

 private:
  static constexpr std::uint64_t kFewest = 2;  // one is read while the other is written
  std::atomic<std::uint64_t> most_{kFewest};
  std::mutex mutex_;
  SteadyTime since_;
  Bytes bytes_ = 0;  // moved since then
};

}  // namespace spark::staging
