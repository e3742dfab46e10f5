// Finds the number of threads that do the most work per second: tries double and half the number, and keeps
// what was clearly faster. More threads help while they wait for a drive or a server, and harm while they
// wait for each other.
#pragma once

#include <optional>

#include "staging/copy/lanes/shape.hpp"

namespace spark::staging {

class ThreadSearch {
 public:
  explicit ThreadSearch(ThreadRange range) : range_(range), best_(range.first) {}

  // The number for the time until the next call of measured().
  unsigned threads() const { return trial_.value_or(best_); }
  // `rate`: work per second with threads(), in any unit.
  void measured(double rate);

 private:
  ThreadRange range_;
  unsigned best_;
  double best_rate_ = 0;  // measured last with best_
  std::optional<unsigned> trial_;
  bool goes_up_ = true;  // the direction of the next trial
  unsigned failed_ = 0;  // trials in a row that were not faster
  unsigned rest_ = 0;    // measurements until the next trial

  void try_next();
};

}  // namespace spark::staging
