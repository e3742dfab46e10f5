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
// With readers, copied at a time: what one of them waits for comes next.
constexpr Bytes kBytesAtOnce = kMiB;

class SmallFiles {
 public:
  SmallFiles(const CopyContext& context, const std::vector<Entry*>& files, IoKind kind,
             const ThreadRange& threads, LeftFiles* for_readers)
      : context_(context),
        files_(files),
        kind_(kind),
        most_(threads.most),
        for_readers_(for_readers),
        gate_(ThreadSearch(threads)) {}

  Result<std::vector<Entry*>> go() {
    reads_direct_ = reads_directly(context_, files_);
    const std::size_t batches = (files_.size() + kFilesAtOnce - 1) / kFilesAtOnce;
    const std::size_t shares = std::min<std::size_t>(most_, batches);
    for (std::size_t i = 0; i < shares; ++i) {
      Share& share = shares_.emplace_back();
      share.next = batches * i / shares;
      share.end = batches * (i + 1) / shares;
    }
    is_taken_ = std::vector<std::atomic<bool>>(files_.size());
    const RunEnd::Waker waker(*context_.end, [this] { gate_.close(); });
    const auto ran = run_in_threads(
        shares, [&](std::size_t number) { take_part(static_cast<unsigned>(number)); },
        [&] { context_.end->fail(); });
    if (!ran) return fail_with(ran.error(), "copying small files");
    if (error_) return fail(std::move(*error_));
    return for_readers_ != nullptr ? for_readers_->take_rest() : std::move(left_);
  }

 private:
  const CopyContext& context_;
  const std::vector<Entry*>& files_;
  IoKind kind_;
  unsigned most_;           // threads
  LeftFiles* for_readers_;  // none without readers
  bool reads_direct_ = false;
  ThreadGate gate_;
  // Neighbours, copied by one thread while other shares are left: two threads that create files in one folder
  // wait for each other.
  struct Share {
    std::atomic<std::size_t> next{0};  // batch of kFilesAtOnce files
    std::size_t end = 0;
  };
  std::deque<Share> shares_;
  struct Files {
    std::size_t next = 0, end = 0;
  };
  // Of a thread. Those beside a file that a reader waits for come before the rest of its batch.
  struct Turn {
    Share* share = nullptr;
    Files batch{}, neighbours{};
  };
  std::vector<std::atomic<bool>> is_taken_;  // by file: one that a reader waits for is taken out of turn
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
    Turn turn;
    for (auto files = next(turn); !files.empty(); files = next(turn)) {
      if (auto copied = copy_left_wanted(); !copied) return copied;
      if (auto copied = copy(copier, files); !copied) return copied;
      // A thread that waits may find no more work when it goes on: all that it has taken is copied first.
      if (turn.batch.next < turn.batch.end || gate_.may_work(thread)) continue;
      if (auto released = copier.release(); !released) return released;
      if (!gate_.wait(thread)) return {};
    }
    if (auto copied = copy_left_wanted(); !copied) return copied;
    if (auto released = copier.release(); !released) return released;
    return context_.check_stop();
  }

  // The file that a reader waits for, then its neighbours; then the next ones of the share; then of a new
  // one, then of one that another thread has begun. None: stopped, or all files are taken.
  std::vector<Entry*> next(Turn& turn) {
    while (!context_.is_stopped()) {
      if (const auto wanted = next_wanted()) {
        turn.neighbours = batch_of(*wanted);
        if (!is_taken_[*wanted].exchange(true)) return {files_[*wanted]};
      }
      for (Files* const files : {&turn.neighbours, &turn.batch})
        if (auto taken = take(*files); !taken.empty()) return taken;
      if (turn.share == nullptr) turn.share = next_share();
      if (turn.share == nullptr) break;
      const std::size_t batch = turn.share->next.fetch_add(1);
      if (batch < turn.share->end) {
        turn.batch = batch_of(batch * kFilesAtOnce);
      } else {
        turn.share = nullptr;
      }
    }
    return {};
  }

  Files batch_of(std::size_t file) const {
    const std::size_t first = file / kFilesAtOnce * kFilesAtOnce;
    return {first, std::min(first + kFilesAtOnce, files_.size())};
  }

  std::vector<Entry*> take(Files& files) {
    const bool has_readers = context_.viewer != nullptr;
    const std::size_t most = has_readers ? kReadsUnderWay : kFilesAtOnce;
    std::vector<Entry*> taken;
    Bytes bytes = 0;
    while (files.next < files.end && taken.size() < most && (!has_readers || bytes < kBytesAtOnce)) {
      const std::size_t file = files.next++;
      if (is_taken_[file].exchange(true)) continue;
      taken.push_back(files_[file]);
      bytes += files_[file]->size;
    }
    return taken;
  }

  std::optional<std::size_t> next_wanted() {
    const auto wanted = context_.viewer != nullptr ? context_.viewer->take_wanted(true) : std::nullopt;
    if (!wanted) return std::nullopt;
    const auto path = [](const Entry* entry) { return entry->path.view(); };
    const auto at = std::ranges::lower_bound(files_, wanted->entry->path.view(), {}, path);
    if (at == files_.end() || *at != wanted->entry) return std::nullopt;
    if (for_readers_ != nullptr) for_readers_->want(*at, wanted->unit);
    return static_cast<std::size_t>(at - files_.begin());
  }

  Result<> copy_left_wanted() {
    return for_readers_ != nullptr ? for_readers_->copy_wanted(nullptr) : Result<>();
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
      if (for_readers_ != nullptr) return for_readers_->add(entry);
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
                                             const ThreadRange& threads, IoKind kind, LeftFiles* left) {
  return SmallFiles(context, files, kind, threads, left).go();
}

}  // namespace spark::staging
