// What this program replaces of libc, so that workers live in virtual time: the clocks, sleeping, waiting for
// a lock, making a mount namespace, random numbers, the parent's process ID, the time of a source's last
// change. Workers have one thread, so that the same history always gives the same calls; the product then
// does all work on it, as under a limit on processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "base/clock.hpp"

namespace spark::histories::copies {

struct FileKey {
  std::uint64_t device = 0, inode = 0;
  auto operator<=>(const FileKey&) const = default;
};

struct SimulatedSystem {
  std::int64_t wall_ns = 0, steady_ns = 0;  // virtual now; 0: the system's
  pid_t daemon = 0;                         // the parent of all workers
  std::uint64_t random = 1;                 // the next random number
  // A mount namespace that a worker enters instead of making one; -1: none.
  std::function<int()> namespace_for_workers = [] { return -1; };
  int worker_namespace = -1;  // in a worker
  // In a worker: called instead of sleeping. Empty elsewhere.
  std::function<void(std::int64_t nanoseconds)> sleep;
  // When the files of sources were changed last, as their file systems say.
  std::map<FileKey, std::int64_t> changed_ns;

  bool is_in_worker() const { return static_cast<bool>(sleep); }
};

SimulatedSystem& simulated();

}  // namespace spark::histories::copies
