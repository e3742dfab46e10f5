// Copies one regular file: its pieces from any thread, read directly, hashed, written directly.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "staging/copy.hpp"
#include "staging/monitor.hpp"
#include "staging/runner.hpp"
#include "staging/throttle.hpp"
#include "staging/tree.hpp"

namespace spark::staging {

// What all files of a run share. Functions are called from any thread.
struct CopyContext {
  const Tree* source = nullptr;
  const Tree* copy = nullptr;
  const StopFlag* stop = nullptr;
  std::atomic<bool>* failed = nullptr;
  Throttle* throttle = nullptr;
  Counters* counters = nullptr;
  bool flush_each = false;                     // where one syncfs at the end is not known to be enough
  std::function<void(const Entry&)> finished;  // the entry is in the copy, with its hash; not flushed yet
  std::function<void(const Entry&)> lost_attributes;
  std::function<void(const std::string& path, Bytes offset)> before_read;  // tests change the source here
};

// Whether the run has to end: the user's wish, or another thread's error. As a Result: Cancelled.
bool is_stopped(const CopyContext& context);
Result<> check_stop(const CopyContext& context);

// `entry` is brought up to date: what was found when the file was opened, and its hash. A file that changes
// while it is read is read again, three times at most.
std::unique_ptr<FileWork> copy_file(const CopyContext& context, Entry& entry);

}  // namespace spark::staging
