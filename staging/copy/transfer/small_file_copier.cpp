#include "staging/copy/transfer/small_file_copier.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/units.hpp"
#include "staging/copy/transfer/small_files.hpp"
#include "staging/copy/transfer/viewer.hpp"
#include "staging/files/lfs_pointer.hpp"
#include "staging/files/metadata.hpp"
#include "staging/manifest/source_identity.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kMostReadAhead = 128 * kKiB;  // of each; a larger file is read when it is copied
constexpr std::size_t kMostHeld = 32;  // files of a thread that wait for their write-back, all open
constexpr Bytes kMostHeldBytes = 8 * kMiB;

}  // namespace

SmallFileCopier::SmallFileCopier(const CopyContext& context, IoKind kind, unsigned lanes, bool reads_direct)
    : context_(context),
      reads_direct_(reads_direct),
      io_(make_io(kind, lanes, kMostReadAhead)),
      buffer_(kSmallFile + kLargestAlignment),
      sources_(*context.source),
      copies_(*context.copy) {}

Result<> SmallFileCopier::copy(std::span<Entry* const> files, const Left& left, bool is_booked) {
  Result<> done;
  while (!files.empty() && done) {
    const auto together = files.first(std::min<std::size_t>(files.size(), io_->lanes()));
    files = files.subspan(together.size());
    done = copy_together(together, left, is_booked);
  }
  return done;
}

Result<> SmallFileCopier::release() {
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

// At most one file for each lane.
Result<> SmallFileCopier::copy_together(std::span<Entry* const> files, const Left& left, bool is_booked) {
  Result<> done;
  unsigned under_way = 0;
  for (Entry* entry : files) {
    if (done = context_.may_read(entry->path, 0, is_booked ? 0 : entry->size); !done) break;
    Reading& reading = readings_[under_way];
    reading.entry = entry;
    context_.settle(*entry);
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
  // All submitted requests must end, because the kernel writes to their buffers.
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

UniqueFd SmallFileCopier::open_source(const Entry& entry) {
  const int folder = sources_.open(entry.path);
  const int direct = reads_direct_ ? O_DIRECT : 0;
  return UniqueFd(::openat(folder, sources_.name().c_str(),
                           O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | direct));
}

bool SmallFileCopier::is_plain_at_source(const Entry& entry) {
  const UniqueFd source = open_source(entry);
  return source && !has_kept_attributes(source.get()).value_or(true);
}

std::size_t SmallFileCopier::to_ask(const Entry& entry) const {
  return reads_direct_ ? rounded_up(entry.size, kLargestAlignment) : entry.size;
}

void SmallFileCopier::start(Reading& reading, unsigned lane) {
  reading.request = {
      Request::Kind::Read, reading.source.get(), io_->buffer(lane).data(), to_ask(*reading.entry), 0, lane};
  io_->start(reading.request);
}

bool SmallFileCopier::read_now(const Reading& reading) {
  const Entry& entry = *reading.entry;
  return entry.size == 0 ||
         ::pread(reading.source.get(), buffer_.data(), to_ask(entry), 0) >= static_cast<ssize_t>(entry.size);
}

// False if the file differs from the walked entry, or needs copy_file.
Result<bool> SmallFileCopier::copy_read(Reading& reading, const std::byte* data) {
  const UniqueFd source = std::move(reading.source);
  Entry& entry = *reading.entry;
  if (!reads_direct_) drop_pages(source.get(), 0, entry.size);
  if (!is_unchanged(entry, source.get()).value_or(false)) return false;
  const auto has_attributes = has_kept_attributes(source.get());
  if (!has_attributes || *has_attributes) return false;  // copy_file reports an error
  if (auto empty = check_empty(entry, source.get(), *context_.source); !empty) return empty.take_error();
  if (auto written = write(entry, data); !written) return written.take_error();
  return true;
}

Result<> SmallFileCopier::write(Entry& entry, const std::byte* data) {
  const std::string shown = context_.copy->shown(entry.path);
  const int folder = copies_.open(entry.path);
  UniqueFd copy(
      ::openat(folder, copies_.name().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!copy) return fail_errno(errno, "creating " + shown);
  const int failed = write_at(copy.get(), data, entry.size);
  if (failed != 0) return fail_errno(failed, "writing " + shown);
  if (auto put = put_plain_metadata(copy.get(), entry, shown); !put) return put.take_error();
  if (!is_uncached_) ::sync_file_range(copy.get(), 0, 0, SYNC_FILE_RANGE_WRITE);  // starts; release() waits
  Hasher hasher;
  hasher.add(std::span<const std::byte>(data, entry.size));
  entry.hash = hasher.digest();
  if (lfs_pointer({reinterpret_cast<const char*>(data), entry.size}))
    context_.notes->add(CopyNotes::Kind::LfsPointer, entry);
  context_.counters->bytes_done += entry.size;
  ++context_.counters->files_done;
  if (context_.viewer != nullptr) context_.viewer->arrived_whole(entry);
  if (!context_.flush_each) {
    context_.journal->finished(entry);
    if (is_uncached_) return {};  // the kernel does the rest; the final flush reports errors
  }
  held_.push_back({std::move(copy), entry.size, &entry});
  held_bytes_ += entry.size;
  if (held_.size() < kMostHeld && held_bytes_ < kMostHeldBytes) return {};
  return release();
}

// Returns errno, or 0.
int SmallFileCopier::write_at(int fd, const std::byte* data, Bytes bytes) {
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

bool reads_directly(const CopyContext& context, const std::vector<Entry*>& files) {
  if (files.empty()) return false;
  const UniqueFd first =
      open_beneath(*context.source, files.front()->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  return first && make_direct(first.get()).direct;
}

}  // namespace spark::staging
