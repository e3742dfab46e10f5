#include "staging/copy/copy_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <utility>

#include "base/units.hpp"
#include "staging/copy/clone.hpp"
#include "staging/copy/transfer/viewer.hpp"
#include "staging/files/metadata.hpp"
#include "staging/manifest/source_identity.hpp"

namespace spark::staging {
namespace {

constexpr int kTries = 3;
constexpr Bytes kLargestFile = 64 * kTiB;
constexpr std::chrono::milliseconds kFlushDataEvery{500};  // the journal is up to a second later
constexpr Bytes kWorthPreallocating = kMiB;                // smaller files are allocated by one write anyway

class CopyFile final : public FileWork {
 public:
  CopyFile(const CopyContext& context, Entry& entry, const KnownPieces* known)
      : context_(context), entry_(entry), known_(known), walked_(identity_of(entry)) {}

  Result<> start() override {
    if (auto go_on = context_.check_stop(); !go_on) return go_on;
    const Entry expected = entry_;
    if (auto opened = open_source(); !opened || is_left_out_) return opened;
    context_.counters->bytes_total += entry_.size - expected.size;  // wraps to the difference
    if (known_ != nullptr && !is_same_source(expected, entry_)) {
      discard();
      if (auto begun = context_.journal->started_now(entry_); !begun) return begun;
    }
    copy_.tree = context_.copy;
    copy_.path = entry_.path;
    if (auto opened = open_copy(); !opened) return opened;
    return prepare_copy();
  }

  std::vector<std::uint64_t> to_do() const override {
    std::vector<std::uint64_t> pieces;
    for (std::uint64_t i = digests_.size(); i-- > 0;) {
      if (!is_known(i)) pieces.push_back(i);
    }
    return pieces;
  }
  WorkFiles files() const override { return {source_, is_shared_ ? nullptr : &copy_}; }

  Result<> before_read(Bytes offset, std::size_t bytes) override {
    return context_.may_read(entry_.path, offset, bytes);
  }

  void moved(Bytes bytes) override {
    context_.counters->bytes_done += bytes;
    if (context_.moved) context_.moved(bytes);
  }

  void piece_done(std::uint64_t piece, const PieceOutcome& outcome) override {
    if (outcome.ended_early) {
      ended_early_ = true;
      return;
    }
    if (outcome.is_vouched_for && is_shown() && has_source_of_walk())
      context_.viewer->arrived(entry_, outcome.units.value_or(units_of_piece(entry_.size, piece)));
    if (outcome.units) return;
    digests_[piece] = outcome.digest;
    if (digests_.size() == 1 || is_shared_ || !outcome.is_vouched_for) return;
    if (context_.flush_each) {
      flush_now_and_then(piece);
    } else {
      context_.journal->piece(entry_, piece, outcome.digest);
    }
  }

  Result<bool> finish() override {
    if (is_left_out_) return true;
    auto changed = source_changed();
    if (!changed) return changed;
    if (!*changed && is_right()) return complete();
    if (!*changed) return begin_again();
    if (++tries_ < kTries) return begin_again();
    const auto left_out =
        leave_out(fail(Errc::Failed,
                       "copying " + context_.source->shown(entry_.path) + ": it changed while it was read, " +
                           std::to_string(kTries) + " times",
                       "stop the program that writes to it, or exclude it"));
    if (!left_out) return left_out.take_error();
    return true;
  }

 private:
  bool is_known(std::uint64_t piece) const {
    return known_ != nullptr && piece < known_->size() && (*known_)[piece].has_value();
  }
  const CopyContext& context_;
  Entry& entry_;
  const KnownPieces* known_;
  SourceIdentity walked_;
  bool has_acl_ = false;  // of a file that a viewer waits for
  bool is_left_out_ = false;
  OpenedFile source_, copy_;
  std::vector<Digest> digests_;
  std::atomic<bool> ended_early_{false};
  int tries_ = 0;
  bool is_shared_ = false;                // the copy shares the source's blocks: there is nothing to write
  std::mutex flush_mutex_;                // guards the next members, if each file is flushed on its own
  std::vector<std::uint64_t> unflushed_;  // pieces
  std::chrono::steady_clock::time_point flushed_at_ = std::chrono::steady_clock::now();
  int flush_error_ = 0;  // errno; the kernel reports it only once, so a later flush would miss it

  // A live view has one state of each file, and no ACLs.
  bool is_shown() const { return context_.viewer != nullptr && identity_of(entry_) == walked_ && !has_acl_; }
  bool has_source_of_walk() const {
    return !context_.has_source || is_unchanged(entry_, source_.fd.get()).value_or(false);
  }

  // Called before a piece is entered in the journal.
  void flush_now_and_then(std::uint64_t piece) {
    const std::scoped_lock lock(flush_mutex_);
    unflushed_.push_back(piece);
    if (std::chrono::steady_clock::now() - flushed_at_ < kFlushDataEvery || flush_error_ != 0) return;
    if (::fdatasync(copy_.fd.get()) != 0) {
      flush_error_ = errno;
      return;
    }
    flushed_at_ = std::chrono::steady_clock::now();
    for (const std::uint64_t flushed : std::exchange(unflushed_, {}))
      context_.journal->piece(entry_, flushed, digests_[flushed]);
  }

  // Opens the current file and updates the entry.
  Result<> open_source() {
    const Tree& from = *context_.source;
    source_.tree = context_.source;
    source_.path = entry_.path;
    source_.size = entry_.size;
    if (!context_.has_source) return {};
    source_.fd = open_beneath(from, entry_.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (!source_.fd) {
      const int number = errno;
      auto failed =
          from.failed(number, "opening", entry_.path,
                      number == ENOENT ? "it went away while its folder was copied; try again" : "");
      const bool is_replaced = number == ENOENT || number == ENOTDIR || number == ELOOP;
      return is_replaced ? leave_out(std::move(failed)) : Result<>(std::move(failed));
    }
    struct stat info {};
    if (::fstat(source_.fd.get(), &info) != 0) return from.failed(errno, "reading", entry_.path);
    if (!S_ISREG(info.st_mode))
      return leave_out(
          fail(Errc::Failed, "opening " + from.shown(entry_.path) + ": it is no regular file any more"));
    if (static_cast<Bytes>(info.st_size) > kLargestFile)
      return fail(Errc::Unsupported, "copying " + from.shown(entry_.path) + ": larger than 64 TiB");
    const std::int64_t walked = entry_.ctime_ns;
    update(entry_, source_.fd.get(), info, from);
    source_.size = entry_.size;
    source_.is_sparse = entry_.allocated < entry_.size;
    source_.mode = make_direct(source_.fd.get());
    if (entry_.ctime_ns == walked) {
      context_.settle(entry_);
    } else {
      settle(entry_.ctime_ns, SystemClock().steady(), [this] { return context_.is_stopped(); });
    }
    if (context_.viewer != nullptr) has_acl_ = has_acl(source_.fd.get());
    if (context_.viewer != nullptr && !is_shown()) context_.viewer->withdraw(entry_, true);
    return check_empty(entry_, source_.fd.get(), from);
  }

  // An error of this file alone, which may have been deleted: with readers of other files, the run goes on.
  Result<> leave_out(tl::unexpected<Error> error) {
    if (context_.viewer == nullptr) return error;
    discard();
    context_.viewer->withdraw(entry_, true);
    context_.left_out->add(std::move(error.value()));
    is_left_out_ = true;
    source_.fd.reset();
    copy_.fd.reset();
    digests_.clear();  // nothing is left to do
    return {};
  }

  // Creates a new file: the existing one may be hard-linked to other copies, or open in a live view.
  Result<> open_copy() {
    const Parent parent = open_parent(*context_.copy, entry_.path);
    const int access = context_.viewer != nullptr ? O_RDWR : O_WRONLY;  // see WorkFiles
    const int flags = access | O_NOFOLLOW | O_CLOEXEC | (known_ != nullptr ? 0 : O_CREAT | O_EXCL);
    if (known_ == nullptr && parent.folder) ::unlinkat(parent.folder.get(), parent.name.c_str(), 0);
    // The earlier attempt may already have removed its own write permission.
    if (known_ != nullptr && ::fchmodat(parent.folder.get(), parent.name.c_str(), 0600, 0) != 0)
      return fail_errno(errno, "opening " + context_.copy->shown(entry_.path));
    copy_.fd.reset(::openat(parent.folder.get(), parent.name.c_str(), flags, 0600));
    if (!copy_.fd) return fail_errno(errno, "creating " + context_.copy->shown(entry_.path));
    return {};
  }

  Result<> prepare_copy() {
    copy_.mode = make_direct(copy_.fd.get());
    copy_.size = entry_.size;
    const std::size_t alignment = std::max(source_.mode.alignment, copy_.mode.alignment);
    source_.mode.alignment = copy_.mode.alignment = alignment;
    digests_.assign(piece_count(entry_.size), {});
    ended_early_ = false;
    is_shared_ = context_.shares_blocks && share_blocks(copy_.fd.get(), source_.fd.get());
    if (is_shared_) {
      known_ = nullptr;
      return {};
    }
    // Not before the blocks are shared: that may change what the pieces hold.
    for (std::uint64_t i = 0; i < digests_.size(); ++i) {
      if (!is_known(i)) continue;
      digests_[i] = *(*known_)[i];
      if (is_shown()) context_.viewer->kept(entry_, units_of_piece(entry_.size, i));
    }
    if (digests_.size() > 1 && known_ == nullptr) context_.journal->started(entry_);
    return make_room();
  }

  // The copy is larger than the file until it is complete: a padded last write lies inside it, and a copy of
  // the file's size is never written again, so a live view may hand it to its readers.
  Result<> make_room() const {
    const auto room = static_cast<off_t>(rounded_up(entry_.size + 1, copy_.mode.alignment));
    const bool allocates = !source_.is_sparse && entry_.size >= kWorthPreallocating;
    if (allocates && ::fallocate(copy_.fd.get(), 0, 0, room) == 0) return {};
    if (allocates && errno != EOPNOTSUPP) return no_room(errno);
    return ::ftruncate(copy_.fd.get(), room) == 0 ? Result<>() : no_room(errno);
  }

  tl::unexpected<Error> no_room(int number) const {
    return fail_errno(number, "making room for " + context_.copy->shown(entry_.path));
  }

  Result<bool> source_changed() {
    if (ended_early_) return true;
    if (!context_.has_source) return false;
    const auto unchanged = is_unchanged(entry_, source_.fd.get());
    if (!unchanged) return context_.source->failed(errno, "reading", entry_.path);
    return !*unchanged;
  }

  bool is_right() const {
    return !context_.is_right || context_.is_right(entry_, digest_of_pieces(digests_));
  }

  Result<bool> begin_again() {
    if (auto again = start_again(); !again) return again.take_error();
    return is_left_out_;
  }

  void discard() {
    if (context_.discards) context_.discards(entry_);
    known_ = nullptr;
  }

  Result<> forget_pieces() const {
    return digests_.size() > 1 ? context_.journal->started_now(entry_) : Result<>();
  }

  Result<> start_again() {
    discard();
    unflushed_.clear();
    if (context_.viewer != nullptr) context_.viewer->withdraw(entry_, source_changed().value_or(false));
    if (auto opened = open_source(); !opened) return opened;
    if (is_left_out_) return {};
    // Of the pieces that were written down, nothing is left then.
    if (auto begun = forget_pieces(); !begun) return begun;
    if (auto opened = open_copy(); !opened) return opened;
    if (auto prepared = prepare_copy(); !prepared) return prepared;
    context_.counters->bytes_total += entry_.size;
    return {};
  }

  // Without a source there are no attributes: the exchange only takes files without them.
  Result<> put_all_metadata(const std::string& shown) {
    if (!context_.has_source) return put_plain_metadata(copy_.fd.get(), entry_, shown);
    const auto kept =
        put_metadata(copy_.fd.get(), source_.fd.get(), entry_, {shown, context_.source->shown(entry_.path)});
    if (!kept) return kept.take_error();
    entry_.lost_attributes = *kept != Kept::All;
    if (entry_.lost_attributes) context_.notes->add(CopyNotes::Kind::LostAttributes, entry_);
    return {};
  }

  Result<bool> complete() {
    const std::string shown = context_.copy->shown(entry_.path);
    const int fd = copy_.fd.get();
    if (::ftruncate(fd, static_cast<off_t>(entry_.size)) != 0) {
      return fail_errno(errno, "cutting to size " + shown);
    }
    if (auto put = put_all_metadata(shown); !put) return put.take_error();
    if (context_.flush_each && flush_error_ == 0 && ::fsync(fd) != 0) flush_error_ = errno;
    if (flush_error_ != 0) return fail_errno(flush_error_, "flushing " + shown);
    entry_.hash = digest_of_pieces(digests_);
    if (is_shown()) context_.viewer->arrived_whole(entry_);
    ++context_.counters->files_done;
    context_.journal->finished(entry_);
    source_.fd.reset();
    copy_.fd.reset();
    return true;
  }
};

}  // namespace

std::unique_ptr<FileWork> copy_file(const CopyContext& context, Entry& entry, const KnownPieces* known) {
  return std::make_unique<CopyFile>(context, entry, known);
}

}  // namespace spark::staging
