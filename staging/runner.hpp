// A fixed set of threads, each with one buffer, that works through files piece by piece: a small file in one
// thread, the pieces of a large one in all of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.hpp"
#include "staging/direct_io.hpp"

namespace spark::staging {

// What one file needs. start, then each piece once, from any thread, then finish in the thread of the last.
class FileWork {
 public:
  virtual ~FileWork() = default;
  virtual Result<> start() = 0;
  virtual std::uint64_t pieces() const = 0;  // at least 1; known after start
  virtual Result<> piece(std::uint64_t index, IoBuffer& buffer) = 0;
  virtual Result<> finish(IoBuffer& buffer) = 0;
};

struct RunPlan {
  unsigned threads = 1;
  Bytes buffer = 2 * kMiB;  // of each thread
  std::uint64_t files = 0;
  std::function<std::unique_ptr<FileWork>(std::uint64_t index)> work_for;
};

// The first error ends the run; `failed` is set then, for pieces under way in other threads to look at.
Result<> run(const RunPlan& plan, std::atomic<bool>& failed);

// From the CPUs, when the caller left it open: direct I/O needs more requests under way than there are CPUs.
unsigned default_threads();

}  // namespace spark::staging
