#include "staging/copy_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "staging/metadata.hpp"
#include "staging/piece_reader.hpp"
#include "staging/times.hpp"

namespace spark::staging {
namespace {

constexpr int kTries = 3;
constexpr Bytes kLargestFile = 64 * kTiB;
constexpr Bytes kWorthPreallocating = kMiB;  // one write allocates less than that in one go anyway

class CopyFile final : public FileWork {
 public:
  CopyFile(const CopyContext& context, Entry& entry) : context_(context), entry_(entry) {}

  Result<> start() override {
    if (auto go_on = check_stop(context_); !go_on) return go_on;
    const Bytes expected = entry_.size;
    if (auto opened = open_source(); !opened) return opened;
    context_.counters->bytes_total += entry_.size - expected;  // wraps to the difference
    copy_.reset(
        open_beneath(*context_.copy, entry_.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600).release());
    if (!copy_) return fail_errno(errno, "creating " + context_.copy->shown(entry_.path));
    return prepare_copy();
  }

  std::uint64_t pieces() const override { return digests_.size(); }

  Result<> piece(std::uint64_t index, IoBuffer& buffer) override {
    PieceVisitor visitor;
    visitor.before_read = [&](Bytes offset, std::size_t bytes) {
      if (context_.before_read) context_.before_read(entry_.path, offset);
      context_.throttle->wait(bytes, [this] { return is_stopped(context_); });
      return check_stop(context_);
    };
    visitor.after_read = [&](Bytes offset, std::size_t bytes) { return write(buffer, offset, bytes); };
    visitor.hole = [&](Bytes bytes) { context_.counters->bytes_done += bytes; };
    if (auto go_on = check_stop(context_); !go_on) return go_on;
    auto read = read_piece(source_, index, buffer, visitor);
    if (!read) return tl::unexpected<Error>(std::move(read.error()));
    digests_[index] = read->digest;
    if (read->ended_early) ended_early_ = true;
    return {};
  }

  Result<> finish(IoBuffer& buffer) override {
    for (int tries = 1;; ++tries) {
      auto changed = source_changed();
      if (!changed) return tl::unexpected<Error>(std::move(changed.error()));
      if (!*changed) return complete();
      if (tries == kTries) {
        return fail(Errc::Failed,
                    "copying " + context_.source->shown(entry_.path) + ": it changed while it was read, " +
                        std::to_string(kTries) + " times",
                    "stop what writes to it, or exclude it");
      }
      if (auto again = copy_again(buffer); !again) return again;
    }
  }

 private:
  const CopyContext& context_;
  Entry& entry_;
  Readable source_;
  UniqueFd copy_;
  IoMode copy_mode_;
  std::vector<Digest> digests_;
  std::atomic<bool> ended_early_{false};

  // Opens what is there now and brings the entry up to date.
  Result<> open_source() {
    const std::string shown = context_.source->shown(entry_.path);
    source_.tree = context_.source;
    source_.path = entry_.path;
    source_.fd = open_beneath(*context_.source, entry_.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (!source_.fd) {
      return fail_errno(errno, "opening " + shown,
                        errno == ENOENT ? "it went away while its folder was copied; try again" : "");
    }
    struct stat info {};
    if (::fstat(source_.fd.get(), &info) != 0) return fail_errno(errno, "reading " + shown);
    if (!S_ISREG(info.st_mode))
      return fail(Errc::Failed, "opening " + shown + ": it is no regular file any more");
    const auto size = static_cast<Bytes>(info.st_size);
    if (size > kLargestFile) return fail(Errc::Unsupported, "copying " + shown + ": larger than 64 TiB");
    source_.size = entry_.size = size;
    source_.is_sparse = static_cast<Bytes>(info.st_blocks) * 512 < size;
    source_.mode = make_direct(source_.fd.get());
    entry_.allocated = std::min<Bytes>(static_cast<Bytes>(info.st_blocks) * 512, size);
    entry_.mtime_ns = nanoseconds(info.st_mtim);
    entry_.ctime_ns = nanoseconds(info.st_ctim);
    entry_.inode = info.st_ino;
    entry_.mode = info.st_mode & context_.source->file_mode_mask;
    entry_.uid = info.st_uid;
    entry_.gid = info.st_gid;
    return {};
  }

  // The copy's size is rounded up until it is complete, so that a padded last write lies inside it.
  Result<> prepare_copy() {
    copy_mode_ = make_direct(copy_.get());
    const std::size_t alignment = std::max(source_.mode.alignment, copy_mode_.alignment);
    source_.mode.alignment = copy_mode_.alignment = alignment;
    digests_.assign(piece_count(entry_.size), {});
    ended_early_ = false;
    if (!source_.is_sparse && entry_.size < kWorthPreallocating) return {};
    const auto room = static_cast<off_t>(round_up(entry_.size, alignment));
    if (!source_.is_sparse && ::fallocate(copy_.get(), 0, 0, room) == 0) return {};
    if (!source_.is_sparse && errno != EOPNOTSUPP) return no_room(errno);
    return ::ftruncate(copy_.get(), room) == 0 ? Result<>() : no_room(errno);
  }

  tl::unexpected<Error> no_room(int number) const {
    return fail_errno(number, "making room for " + context_.copy->shown(entry_.path));
  }

  Result<> write(IoBuffer& buffer, Bytes offset, std::size_t bytes) {
    const int failed = write_at(copy_.get(), copy_mode_, buffer.data(), bytes, offset);
    if (failed != 0) {
      return fail_errno(
          failed, "writing " + context_.copy->shown(entry_.path),
          failed == ENOSPC ? "free some space and start again: what was copied so far is kept" : "");
    }
    context_.counters->bytes_done += bytes;
    return {};
  }

  Result<bool> source_changed() {
    if (ended_early_) return true;
    struct stat info {};
    if (::fstat(source_.fd.get(), &info) != 0) {
      return fail_errno(errno, "reading " + context_.source->shown(entry_.path));
    }
    return static_cast<Bytes>(info.st_size) != entry_.size || nanoseconds(info.st_mtim) != entry_.mtime_ns ||
           nanoseconds(info.st_ctim) != entry_.ctime_ns;
  }

  Result<> copy_again(IoBuffer& buffer) {
    if (::ftruncate(copy_.get(), 0) != 0)
      return fail_errno(errno, "emptying " + context_.copy->shown(entry_.path));
    if (auto opened = open_source(); !opened) return opened;
    if (auto prepared = prepare_copy(); !prepared) return prepared;
    context_.counters->bytes_total += entry_.size;
    for (std::uint64_t i = 0; i < pieces(); ++i) {
      if (auto done = piece(i, buffer); !done) return done;
    }
    return {};
  }

  Result<> complete() {
    const std::string shown = context_.copy->shown(entry_.path);
    if (::ftruncate(copy_.get(), static_cast<off_t>(entry_.size)) != 0) {
      return fail_errno(errno, "cutting to size " + shown);
    }
    const auto kept = put_metadata(copy_.get(), source_.fd.get(), entry_, shown);
    if (!kept) return tl::unexpected<Error>(kept.error());
    if (*kept != Kept::All) context_.lost_attributes(entry_);
    if (context_.flush_each && ::fsync(copy_.get()) != 0) return fail_errno(errno, "flushing " + shown);
    entry_.hash = digest_of_pieces(digests_);
    ++context_.counters->files_done;
    context_.finished(entry_);
    source_.fd.reset();
    copy_.reset();
    return {};
  }
};

}  // namespace

bool is_stopped(const CopyContext& context) {
  return *context.stop || *context.failed;
}

Result<> check_stop(const CopyContext& context) {
  if (!is_stopped(context)) return {};
  return fail(Errc::Cancelled, "copying " + context.source->shown("") + ": interrupted",
              "what was copied so far is kept for the next attempt");
}

std::unique_ptr<FileWork> copy_file(const CopyContext& context, Entry& entry) {
  return std::make_unique<CopyFile>(context, entry);
}

}  // namespace spark::staging
