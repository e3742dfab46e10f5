#include "staging/copy/transfer/small_files.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <span>

#include "base/threads.hpp"
#include "staging/copy/transfer/small_file_copier.hpp"
#include "staging/files/holes.hpp"

namespace spark::staging {
namespace {

constexpr unsigned kMostReadsUnderWay = 256;  // of all threads; limits the memory of their buffers

class SmallFiles {
 public:
  SmallFiles(const CopyContext& context, const std::vector<Entry*>& files, IoKind kind)
      : context_(context), files_(files), kind_(kind) {}

  Result<std::vector<Entry*>> go(unsigned threads) {
    const bool reads_direct = reads_directly(context_, files_);
    const std::size_t batches = (files_.size() + kFilesAtOnce - 1) / kFilesAtOnce;
    const std::size_t shares = std::min<std::size_t>(threads, batches);
    for (std::size_t i = 0; i < shares; ++i) {
      Share& share = shares_.emplace_back();
      share.next = files_.size() * i / shares;
      share.end = files_.size() * (i + 1) / shares;
    }
    const auto ran = run_in_threads(
        shares, [&](std::size_t own) { work(own, reads_direct); }, [&] { *context_.failed = true; });
    if (!ran) return fail_with(ran.error(), "copying small files");
    if (error_) return fail(std::move(*error_));
    return std::move(left_);
  }

 private:
  const CopyContext& context_;
  const std::vector<Entry*>& files_;
  IoKind kind_;
  // Neighbours, assigned to one thread until it has finished: two threads that create files in one folder
  // wait for each other.
  struct Share {
    std::atomic<std::size_t> next{0};
    std::size_t end = 0;
  };
  std::deque<Share> shares_;
  std::mutex mutex_;
  std::vector<Entry*> left_;
  std::optional<Error> error_;

  // Its own share, then the rest of the other threads' shares.
  void work(std::size_t own, bool reads_direct) {
    const auto workers = static_cast<unsigned>(shares_.size());
    const unsigned lanes = std::clamp(kMostReadsUnderWay / workers, 1U, kFilesAtOnce);
    SmallFileCopier worker(context_, kind_, lanes, reads_direct);
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      if (auto done = work_on(shares_[(own + i) % shares_.size()], worker); !done)
        return fail_run(std::move(done.error()));
    }
    if (auto released = worker.release(); !released) return fail_run(std::move(released.error()));
    if (auto go_on = context_.check_stop(); !go_on) fail_run(std::move(go_on.error()));
  }

  Result<> work_on(Share& share, SmallFileCopier& worker) {
    while (!context_.is_stopped()) {
      const auto began = std::chrono::steady_clock::now();
      const std::size_t first = share.next.fetch_add(kFilesAtOnce);
      if (first >= share.end) break;
      const auto files =
          std::span(files_).subspan(first, std::min<std::size_t>(kFilesAtOnce, share.end - first));
      auto copied = worker.copy(files, [this](Entry* entry) {
        const std::scoped_lock lock(mutex_);
        left_.push_back(entry);
      });
      if (!copied) return copied;
      context_.counters->spent(Activity::SmallFiles, std::chrono::steady_clock::now() - began);
    }
    return {};
  }

  void fail_run(Error error) {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = std::move(error);
    *context_.failed = true;
  }
};

}  // namespace

bool is_small(const Entry& entry) {
  return entry.size <= kSmallFile && (entry.size <= kHoleWorthKeeping || entry.allocated == entry.size);
}

Result<std::vector<Entry*>> copy_small_files(const CopyContext& context, const std::vector<Entry*>& files,
                                             unsigned threads, IoKind kind) {
  return SmallFiles(context, files, kind).go(threads);
}

}  // namespace spark::staging
