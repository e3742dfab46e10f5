// The maximum number of pieces in progress. A crash loses the data of unfinished pieces: with many concurrent
// pieces, a slow run would lose much of its work, with none of it in the journal.
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
  std::uint64_t most() const { return most_; }  // the number that the run moves in half a second, at least 2
  // Below half a gigabyte per second, or at the start: a piece takes so long that readers should not wait for
  // it.
  bool is_slow() const { return most_ < kOfFastRun; }

 private:
  static constexpr std::uint64_t kFewest = 2;  // one is read while the other is written
  static constexpr std::uint64_t kOfFastRun = 32;
  std::atomic<std::uint64_t> most_{kFewest};
  std::mutex mutex_;
  SteadyTime since_;
  Bytes bytes_ = 0;  // moved since then
};

}  // namespace spark::staging
