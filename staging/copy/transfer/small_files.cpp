#include "staging/copy/transfer/small_files.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <span>

#include "base/threads.hpp"
#include "staging/copy/lanes/pace.hpp"
#include "staging/copy/transfer/small_file_copier.hpp"
#include "staging/copy/transfer/thread_gate.hpp"
#include "staging/copy/transfer/viewer.hpp"
#include "staging/files/holes.hpp"

namespace spark::staging {
namespace {

constexpr unsigned kReadsUnderWay = 8;  // of each thread

class SmallFiles {
 public:
  SmallFiles(const CopyContext& context, const std::vector<Entry*>& files, IoKind kind,
             const ThreadRange& threads)
      : context_(context), files_(files), kind_(kind), most_(threads.most), gate_(ThreadSearch(threads)) {}

  Result<std::vector<Entry*>> go() {
    reads_direct_ = reads_directly(context_, files_);
    const std::size_t batches = (files_.size() + kFilesAtOnce - 1) / kFilesAtOnce;
    const std::size_t shares = std::min<std::size_t>(most_, batches);
    for (std::size_t i = 0; i < shares; ++i) {
      Share& share = shares_.emplace_back();
      share.next = batches * i / shares;
      share.end = batches * (i + 1) / shares;
    }
    is_taken_ = std::vector<std::atomic<bool>>(batches);
    const RunEnd::Waker waker(*context_.end, [this] { gate_.close(); });
    const auto ran = run_in_threads(
        shares, [&](std::size_t number) { take_part(static_cast<unsigned>(number)); },
        [&] { context_.end->fail(); });
    if (!ran) return fail_with(ran.error(), "copying small files");
    if (error_) return fail(std::move(*error_));
    return std::move(left_);
  }

 private:
  const CopyContext& context_;
  const std::vector<Entry*>& files_;
  IoKind kind_;
  unsigned most_;  // threads
  bool reads_direct_ = false;
  ThreadGate gate_;
  // Neighbours, copied by one thread while other shares are left: two threads that create files in one folder
  // wait for each other.
  struct Share {
    std::atomic<std::size_t> next{0};  // batch of kFilesAtOnce files
    std::size_t end = 0;
  };
  std::deque<Share> shares_;
  std::vector<std::atomic<bool>> is_taken_;  // by batch: one that a reader waits for is taken out of turn
  std::atomic<std::size_t> untaken_{0};      // the first share that no thread has begun
  std::mutex mutex_;
  std::vector<Entry*> left_;
  std::optional<Error> error_;

  void take_part(unsigned thread) {
    if (!gate_.wait(thread)) return;
    if (auto done = copy_shares(thread); !done) fail_run(std::move(done.error()));
    gate_.close();
  }

  Result<> copy_shares(unsigned thread) {
    SmallFileCopier copier(context_, kind_, kReadsUnderWay, reads_direct_);
    Share* share = nullptr;
    for (auto files = next(share); !files.empty(); files = next(share)) {
      if (auto copied = copy(copier, files); !copied) return copied;
      if (gate_.may_work(thread)) continue;
      if (auto released = copier.release(); !released) return released;
      if (!gate_.wait(thread)) return {};
    }
    if (auto released = copier.release(); !released) return released;
    return context_.check_stop();
  }

  // The files that a reader waits for, with their neighbours; then the next ones of the share; then of a new
  // one, then of one that another thread has begun. None: stopped, or all files are taken.
  std::span<Entry* const> next(Share*& share) {
    while (!context_.is_stopped()) {
      const auto wanted = next_wanted();
      if (!wanted && share == nullptr) share = next_share();
      if (!wanted && share == nullptr) break;
      const std::size_t batch = wanted ? *wanted : share->next.fetch_add(1);
      if (!wanted && batch >= share->end) {
        share = nullptr;
      } else if (!is_taken_[batch].exchange(true)) {
        const std::size_t first = batch * kFilesAtOnce;
        return std::span(files_).subspan(first, std::min<std::size_t>(kFilesAtOnce, files_.size() - first));
      }
    }
    return {};
  }

  std::optional<std::size_t> next_wanted() {
    const auto wanted = context_.viewer != nullptr ? context_.viewer->take_wanted(true) : std::nullopt;
    if (!wanted) return std::nullopt;
    const auto path = [](const Entry* entry) { return entry->path.view(); };
    const auto at = std::ranges::lower_bound(files_, wanted->entry->path.view(), {}, path);
    if (at == files_.end() || *at != wanted->entry) return std::nullopt;
    return static_cast<std::size_t>(at - files_.begin()) / kFilesAtOnce;
  }

  Share* next_share() {
    const std::size_t untaken = untaken_++;
    if (untaken < shares_.size()) return &shares_[untaken];
    const auto left = [](const Share& share) { return share.end - std::min(share.end, share.next.load()); };
    Share& longest = *std::ranges::max_element(shares_, {}, left);
    return left(longest) > 0 ? &longest : nullptr;
  }

  Result<> copy(SmallFileCopier& copier, std::span<Entry* const> files) {
    const auto began = std::chrono::steady_clock::now();
    auto copied = copier.copy(files, [this](Entry* entry) {
      const std::scoped_lock lock(mutex_);
      left_.push_back(entry);
    });
    const auto ended = std::chrono::steady_clock::now();
    context_.counters->spent(Activity::SmallFiles, ended - began);
    Bytes bytes = 0;
    for (const Entry* entry : files) bytes += entry->size;
    gate_.did(work(bytes, files.size()), ended);
    return copied;
  }

  void fail_run(Error error) {
    {
      const std::scoped_lock lock(mutex_);
      if (!error_) error_ = std::move(error);
    }
    context_.end->fail();
  }
};

}  // namespace

bool is_small(const Entry& entry) {
  return entry.size <= kSmallFile && (entry.size <= kHoleWorthKeeping || entry.allocated == entry.size);
}

Result<std::vector<Entry*>> copy_small_files(const CopyContext& context, const std::vector<Entry*>& files,
                                             const ThreadRange& threads, IoKind kind) {
  return SmallFiles(context, files, kind, threads).go();
}

}  // namespace spark::staging
