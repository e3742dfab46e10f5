#include "staging/small_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "staging/direct_io.hpp"
#include "staging/metadata.hpp"
#include "staging/parents.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kFilesAtOnce = 32;  // files that a thread takes at once: neighbours in a folder
constexpr std::size_t kMostHeld = 32;     // files of a thread that wait for their write-back, all open
constexpr Bytes kMostHeldBytes = 8 * kMiB;
constexpr Bytes kHoleWorthKeeping = 4 * kKiB;

class Worker {
 public:
  Worker(const CopyContext& context, bool reads_direct)
      : context_(context),
        reads_direct_(reads_direct),
        buffer_(kSmallFile + kLargestAlignment),
        sources_(*context.source),
        copies_(*context.copy) {}

  // Whether it was copied; false: it needs the long way.
  Result<bool> copy(Entry& entry) {
    if (auto go_on = context_.may_read(entry.path, 0, entry.size); !go_on)
      return tl::unexpected<Error>(go_on.error());
    const UniqueFd source = open_source(entry);
    if (!source || !read(source.get(), entry)) return false;
    if (has_kept_attributes(source.get())) return false;
    return write(entry);
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
  struct Held {
    UniqueFd fd;
    Bytes bytes;
    const Entry* entry;
  };

  const CopyContext& context_;
  bool reads_direct_;
  IoBuffer buffer_;
  Parents sources_, copies_;
  bool is_uncached_ = true;  // until the kernel says that it can't
  std::vector<Held> held_;
  Bytes held_bytes_ = 0;

  UniqueFd open_source(const Entry& entry) {
    const int folder = sources_.open(entry.path);
    const int direct = reads_direct_ ? O_DIRECT : 0;
    return UniqueFd(::openat(folder, sources_.name().c_str(),
                             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | direct));
  }

  // False if it can't be read so, or is not what was walked.
  bool read(int fd, const Entry& entry) {
    if (entry.size > 0) {
      const std::size_t ask = reads_direct_ ? round_up(entry.size, kLargestAlignment) : entry.size;
      const ssize_t got = ::pread(fd, buffer_.data(), ask, 0);
      if (!reads_direct_) drop_pages(fd, 0, entry.size);
      if (got < static_cast<ssize_t>(entry.size)) return false;
    }
    struct stat info {};
    return ::fstat(fd, &info) == 0 && is_unchanged(entry, info);
  }

  Result<bool> write(Entry& entry) {
    const std::string shown = context_.copy->shown(entry.path);
    const int folder = copies_.open(entry.path);
    UniqueFd copy(
        ::openat(folder, copies_.name().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!copy) return fail_errno(errno, "creating " + shown);
    const int failed = write_at(copy.get(), entry.size);
    if (failed != 0) return fail_errno(failed, "writing " + shown);
    if (auto put = put_plain_metadata(copy.get(), entry, shown); !put)
      return tl::unexpected<Error>(put.error());
    if (!is_uncached_) ::sync_file_range(copy.get(), 0, 0, SYNC_FILE_RANGE_WRITE);  // begins; release() waits
    Hasher hasher;
    hasher.add(std::span<const std::byte>(buffer_.data(), entry.size));
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
    if (auto released = release(); !released) return tl::unexpected<Error>(std::move(released.error()));
    return true;
  }

  // Gives errno, or 0.
  int write_at(int fd, Bytes bytes) {
    for (Bytes done = 0; done < bytes;) {
      const std::byte* from = buffer_.data() + done;
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
  SmallFiles(const CopyContext& context, const std::vector<Entry*>& files)
      : context_(context), files_(files) {}

  Result<std::vector<Entry*>> go(unsigned threads) {
    const bool reads_direct = can_read_directly();
    const std::size_t batches = (files_.size() + kFilesAtOnce - 1) / kFilesAtOnce;
    const std::size_t shares = std::min<std::size_t>(threads, batches);
    for (std::size_t i = 0; i < shares; ++i) {
      Share& share = shares_.emplace_back();
      share.next = files_.size() * i / shares;
      share.end = files_.size() * (i + 1) / shares;
    }
    {
      std::vector<std::jthread> running;
      for (std::size_t i = 0; i < shares; ++i) {
        running.emplace_back([this, i, reads_direct] { work(i, reads_direct); });
      }
    }
    if (error_) return tl::unexpected<Error>(std::move(*error_));
    return std::move(left_);
  }

 private:
  const CopyContext& context_;
  const std::vector<Entry*>& files_;
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
    Worker worker(context_, reads_direct);
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
      for (std::size_t i = first; i < std::min(first + kFilesAtOnce, share.end); ++i) {
        auto copied = worker.copy(*files_[i]);
        if (!copied) return tl::unexpected<Error>(std::move(copied.error()));
        if (*copied) continue;
        const std::scoped_lock lock(mutex_);
        left_.push_back(files_[i]);
      }
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
                                             unsigned threads) {
  return SmallFiles(context, files).go(threads);
}

}  // namespace spark::staging
