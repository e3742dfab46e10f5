// What the connections of a server read from drives now.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.hpp"
#include "fleet/serve/buffer_pool.hpp"

namespace spark::fleet {

// Thread-safe. Outlives its reads. A drive that hangs keeps the threads and buffers of the reads that it has,
// for ever: it gets no more of them, so that what is on other drives is served.
class RunningReads {
 private:
  struct Entry {
    std::string of;
    const BufferPool::Loan* buffer;
    SteadyTime began;
  };
  struct End {
    RunningReads* its = nullptr;
    std::list<Entry>::iterator at;
    void operator()(const Entry* /*entry*/) const { its->end(at); }
  };

 public:
  // A read that has taken this long hangs.
  explicit RunningReads(std::chrono::milliseconds longest) : longest_(longest) {}

  using Read = std::unique_ptr<const Entry, End>;
  // `of` is a set or a file. `buffer` outlives the read; null: it has none. Null while a read of the same
  // hangs.
  Read begin(const std::string& of, const BufferPool::Loan* buffer = nullptr);
  bool hangs(const Read& read) const;
  // The buffers of reads that hang leave the accounts of `pool`.
  void write_off(BufferPool& pool) const;

 private:
  const std::chrono::milliseconds longest_;
  mutable std::mutex mutex_;  // guards running_; locked before that of the pool
  std::list<Entry> running_;

  bool hangs(const Entry& entry, SteadyTime now) const { return now - entry.began >= longest_; }
  void end(std::list<Entry>::iterator at);
};

}  // namespace spark::fleet
