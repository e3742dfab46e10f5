#include "staging/copy/small_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "base/rounding.hpp"
#include "base/threads.hpp"
#include "staging/files/holes.hpp"
#include "staging/files/io/direct_io.hpp"
#include "staging/files/io/io.hpp"
#include "staging/files/metadata.hpp"
#include "staging/files/parent_dir_cache.hpp"

namespace spark::staging {
namespace {

// Files that a thread takes at once: neighbours in a folder. Their reads are asked for in one call, which
// lets the kernel make one request of files that lie side by side on the drive.
constexpr unsigned kFilesAtOnce = 32;
constexpr unsigned kMostReadsUnderWay = 256;        // of all threads: what they read into is bounded by it
constexpr std::size_t kMostReadAhead = 128 * kKiB;  // of each; a larger file is read when its turn comes
constexpr std::size_t kMostHeld = 32;  // files of a thread that wait for their write-back, all open
constexpr Bytes kMostHeldBytes = 8 * kMiB;

class Worker {
 public:
  Worker(const CopyContext& context, IoKind kind, unsigned lanes, bool reads_direct)
      : context_(context),
        reads_direct_(reads_direct),
        io_(make_io(kind, lanes, kMostReadAhead)),
        buffer_(kSmallFile + kLargestAlignment),
        sources_(*context.source),
        copies_(*context.copy) {}

  // Calls left(entry) for each that needs the long way.
  template <typename Left>
  Result<> copy(std::span<Entry* const> files, const Left& left) {
    Result<> done;
    while (!files.empty() && done) {
      const auto together = files.first(std::min<std::size_t>(files.size(), io_->lanes()));
      files = files.subspan(together.size());
      done = copy_together(together, left);
    }
    return done;
  }

  // Writes back what is held, in the order in which it was written, and drops it from the page cache.
  Result<> release() {
    Result<> all;
    for (const Held& held : held_) {
      const int failed = context_.flush_each ? (::fsync(held.fd.get()) == 0 ? 0 : errno)
                                             : write_back_and_drop(held.fd.get(), 0, held.bytes);
      if (failed != 0 && all) {
        all = fail_errno(failed, "writing " + context_.copy->shown(held.entry->path));
      } else if (failed == 0 && context_.flush_each) {
        context_.journal->finished(*held.entry);
      }
    }
    held_.clear();
    held_bytes_ = 0;
    return all;
  }

 private:
  struct Reading {
    Entry* entry = nullptr;
    UniqueFd source;
    Request request{};
  };
  struct Held {
    UniqueFd fd;
    Bytes bytes;
    const Entry* entry;
  };

  const CopyContext& context_;
  bool reads_direct_;
  std::array<Reading, kFilesAtOnce> readings_;
  std::unique_ptr<Io> io_;  // ends before what it reads into is gone
  IoBuffer buffer_;
  ParentDirCache sources_, copies_;
  bool is_uncached_ = true;  // until the kernel says that it can't
  std::vector<Held> held_;
  Bytes held_bytes_ = 0;

  // At most a file a lane.
  template <typename Left>
  Result<> copy_together(std::span<Entry* const> files, const Left& left) {
    Result<> done;
    unsigned under_way = 0;
    for (Entry* entry : files) {
      if (done = context_.may_read(entry->path, 0, entry->size); !done) break;
      Reading& reading = readings_[under_way];
      reading.entry = entry;
      reading.source = open_source(*entry);
      if (!reading.source) {
        left(entry);
      } else if (entry->size == 0 || entry->size > kMostReadAhead) {
        auto copied = read_now(reading) ? copy_read(reading, buffer_.data()) : false;
        if (copied && !*copied) left(entry);
        if (!copied) done = copied.take_error();
      } else {
        start(reading, under_way++);
      }
      if (!done) break;
    }
    // What was asked for is waited for, whatever happened: the kernel writes to it.
    for (; under_way > 0; --under_way) {
      const Request& ended = io_->wait();
      Reading& reading = readings_[ended.lane];
      if (!done) continue;
      const bool is_whole = ended.result >= static_cast<std::ptrdiff_t>(reading.entry->size);
      auto copied = is_whole ? copy_read(reading, ended.data) : false;
      if (copied && !*copied) left(reading.entry);
      if (!copied) done = copied.take_error();
    }
    return done;
  }

  UniqueFd open_source(const Entry& entry) {
    const int folder = sources_.open(entry.path);
    const int direct = reads_direct_ ? O_DIRECT : 0;
    return UniqueFd(::openat(folder, sources_.name().c_str(),
                             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | direct));
  }

  std::size_t to_ask(const Entry& entry) const {
    return reads_direct_ ? round_up(entry.size, kLargestAlignment) : entry.size;
  }

  void start(Reading& reading, unsigned lane) {
    reading.request = {
        Request::Kind::Read, reading.source.get(), io_->buffer(lane).data(), to_ask(*reading.entry), 0, lane};
    io_->start(reading.request);
  }

  bool read_now(const Reading& reading) {
    const Entry& entry = *reading.entry;
    return entry.size == 0 || ::pread(reading.source.get(), buffer_.data(), to_ask(entry), 0) >=
                                  static_cast<ssize_t>(entry.size);
  }

  // False if it is not what was walked, or has what takes the long way.
  Result<bool> copy_read(Reading& reading, const std::byte* data) {
    const UniqueFd source = std::move(reading.source);
    Entry& entry = *reading.entry;
    if (!reads_direct_) drop_pages(source.get(), 0, entry.size);
    if (!is_unchanged(entry, source.get()).value_or(false)) return false;
    if (has_kept_attributes(source.get())) return false;
    return write(entry, data);
  }

  Result<bool> write(Entry& entry, const std::byte* data) {
    const std::string shown = context_.copy->shown(entry.path);
    const int folder = copies_.open(entry.path);
    UniqueFd copy(
        ::openat(folder, copies_.name().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!copy) return fail_errno(errno, "creating " + shown);
    const int failed = write_at(copy.get(), data, entry.size);
    if (failed != 0) return fail_errno(failed, "writing " + shown);
    if (auto put = put_plain_metadata(copy.get(), entry, shown); !put) return put.take_error();
    if (!is_uncached_) ::sync_file_range(copy.get(), 0, 0, SYNC_FILE_RANGE_WRITE);  // begins; release() waits
    Hasher hasher;
    hasher.add(std::span<const std::byte>(data, entry.size));
    entry.hash = hasher.digest();
    context_.counters->bytes_done += entry.size;
    ++context_.counters->files_done;
    if (!context_.flush_each) {
      context_.journal->finished(entry);
      if (is_uncached_) return true;  // the kernel does the rest; errors come with the flush of all
    }
    held_.push_back({std::move(copy), entry.size, &entry});
    held_bytes_ += entry.size;
    if (held_.size() < kMostHeld && held_bytes_ < kMostHeldBytes) return true;
    if (auto released = release(); !released) return released.take_error();
    return true;
  }

  // Gives errno, or 0.
  int write_at(int fd, const std::byte* data, Bytes bytes) {
    for (Bytes done = 0; done < bytes;) {
      const std::byte* from = data + done;
      const ssize_t wrote = is_uncached_ ? write_uncached(fd, from, bytes - done, done)
                                         : ::pwrite(fd, from, bytes - done, static_cast<off_t>(done));
      if (wrote < 0 && is_uncached_ && (errno == EOPNOTSUPP || errno == EINVAL)) {
        is_uncached_ = false;
        continue;
      }
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) return wrote < 0 ? errno : EIO;
      done += static_cast<Bytes>(wrote);
    }
    return 0;
  }
};

class SmallFiles {
 public:
  SmallFiles(const CopyContext& context, const std::vector<Entry*>& files, IoKind kind)
      : context_(context), files_(files), kind_(kind) {}

  Result<std::vector<Entry*>> go(unsigned threads) {
    const bool reads_direct = can_read_directly();
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
  // Neighbours, a thread's own until it is through: two threads that make files in one folder wait for each
  // other.
  struct Share {
    std::atomic<std::size_t> next{0};
    std::size_t end = 0;
  };
  std::deque<Share> shares_;
  std::mutex mutex_;
  std::vector<Entry*> left_;
  std::optional<Error> error_;

  // All are on one file system: what goes for the first goes for all.
  bool can_read_directly() const {
    if (files_.empty()) return false;
    const UniqueFd first =
        open_beneath(*context_.source, files_.front()->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    return first && make_direct(first.get()).direct;
  }

  // Its own share, then what is left of the others'.
  void work(std::size_t own, bool reads_direct) {
    const auto workers = static_cast<unsigned>(shares_.size());
    const unsigned lanes = std::clamp(kMostReadsUnderWay / workers, 1U, kFilesAtOnce);
    Worker worker(context_, kind_, lanes, reads_direct);
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      if (auto done = work_on(shares_[(own + i) % shares_.size()], worker); !done)
        return fail_run(std::move(done.error()));
    }
    if (auto released = worker.release(); !released) return fail_run(std::move(released.error()));
    if (auto go_on = context_.check_stop(); !go_on) fail_run(std::move(go_on.error()));
  }

  Result<> work_on(Share& share, Worker& worker) {
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
