#include "staging/copy/lanes/lane.hpp"
#include "base/units.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

namespace spark::staging {
namespace {

struct Stretch {
  Bytes begin, end;
};

// The next bytes in [from, end) that are not a hole, widened to the alignment; empty at `end` if there are
// none.
Stretch next_data(const OpenedFile& file, Bytes from, Bytes end) {
  if (!file.is_sparse) return {from, end};
  const off_t data = ::lseek(file.fd.get(), static_cast<off_t>(from), SEEK_DATA);
  if (data < 0 && errno == ENXIO) return {end, end};  // a hole up to the end of the file
  if (data < 0) return {from, end};                   // not known: everything is read
  if (static_cast<Bytes>(data) >= end) return {end, end};
  const off_t hole = ::lseek(file.fd.get(), data, SEEK_HOLE);
  if (hole < 0) return {from, end};
  return {std::max(from, round_down(static_cast<Bytes>(data), file.mode.alignment)),
          std::min(end, rounded_up(static_cast<Bytes>(hole), file.mode.alignment))};
}

tl::unexpected<Error> write_failed(int number, const OpenedFile& copy) {
  return fail_errno(number, "writing " + copy.tree->shown(copy.path));
}

}  // namespace

Lane::Lane(unsigned number, std::span<std::byte> buffer, unsigned siblings, Counters& counters)
    : buffer_(buffer), siblings_(siblings), counters_(counters) {
  request_.lane = number;
}

void Lane::begin(FileWork& file, const LaneTask& task) {
  file_ = &file;
  task_ = task;
  state_ = State::Fresh;
  at_ = task.unit ? *task.unit * kViewUnit : task.piece * kHashPiece;
  end_ = std::min(file.files().source.size, at_ + (task.unit ? kViewUnit : kHashPiece));
  hasher_.reset();
  early_hasher_.reset();
  interrupted_.reset();
  first_.clear();
  outcome_ = {};
  if (task.unit) outcome_.units = UnitRange{*task.unit, 1};
}

Result<Request*> Lane::advance(std::size_t chunk) {
  if (state_ != State::Fresh && request_.result == kRequestLost) {
    const OpenedFile& source = std::exchange(file_, nullptr)->files().source;
    return fail(Errc::Failed, "copying " + source.tree->shown(source.path) + ": io_uring has stopped working",
                "`sysctl kernel.io_uring_disabled=2` makes copies use threads instead");
  }
  auto next = state_ == State::Reading       ? after_read(chunk)
              : state_ == State::Writing     ? after_write(chunk)
              : state_ == State::ReadingBack ? after_read_back(chunk)
                                             : next_chunk(chunk);
  if (!next || *next == nullptr) file_ = nullptr;
  return next;
}

Result<Request*> Lane::next_chunk(std::size_t chunk) {
  const auto [source, copy] = file_->files();
  if (interrupted_ && at_ == end_) resume();
  interrupt();
  while (at_ < end_) {
    Bytes until = end_of_unit(at_);
    if (early_at(at_)) {
      want_ = std::min<Bytes>({chunk, buffer_.size(), until - at_});
      state_ = State::ReadingBack;
      return ask(Request::Kind::Read, *copy, want_);
    }
    while (until < end_ && !early_at(until)) until = end_of_unit(until);
    const Stretch data = next_data(source, at_, until);
    if (data.begin > at_) {
      (interrupted_ ? early_hasher_ : hasher_).add_zeros(data.begin - at_);
      file_->moved(data.begin - at_);
      at_ = data.begin;
      if (interrupted_ && at_ == end_) resume();
      continue;
    }
    want_ = std::min<Bytes>({chunk, buffer_.size(), data.end - at_});
    if (auto go_on = file_->before_read(at_, want_); !go_on) return go_on.take_error();
    state_ = State::Reading;
    return ask(Request::Kind::Read, source, want_);
  }
  return end();
}

void Lane::fetch_first(std::uint64_t unit) {
  if (file_ != nullptr && file_->files().copy != nullptr) first_.push_back(unit);
}

// Not within a unit that is read back, as both need the second hash.
void Lane::interrupt() {
  const bool is_reading_back = early_at(at_) && at_ % kViewUnit != 0;
  while (!interrupted_ && !is_reading_back && !first_.empty()) {
    const Bytes begin = first_.back() * kViewUnit;
    first_.pop_back();
    if (begin <= at_ || begin >= end_ || early_at(begin)) continue;
    interrupted_ = std::pair(at_, end_);
    at_ = begin;
    end_ = end_of_unit(at_);
  }
}

void Lane::resume() {
  const std::uint64_t unit = (at_ - 1) / kViewUnit;
  task_.early[unit % kUnitsOfPiece] = early_hasher_.digest();
  early_hasher_.reset();
  std::tie(at_, end_) = *std::exchange(interrupted_, std::nullopt);
  PieceOutcome part;
  part.units = UnitRange{unit, 1};
  file_->piece_done(task_.piece, part);
}

const std::optional<Digest>& Lane::early_at(Bytes offset) const {
  return task_.early[offset / kViewUnit % kUnitsOfPiece];
}

Bytes Lane::end_of_unit(Bytes offset) const {
  return std::min(end_, round_down(offset, kViewUnit) + kViewUnit);
}

Request* Lane::ask(Request::Kind kind, const OpenedFile& file, std::size_t bytes) {
  request_.kind = kind;
  request_.fd = file.fd.get();
  request_.data = buffer_.data();
  request_.bytes = file.mode.direct ? rounded_up(bytes, file.mode.alignment) : bytes;
  request_.offset = at_;
  started_ = Clock::now();
  return &request_;
}

// The chunk, of which fewer bytes are there if the file ends before. A short read is completed with further
// calls.
ReadOutcome Lane::take_read(const OpenedFile& file) {
  const ReadOutcome read = request_.result >= static_cast<std::ptrdiff_t>(want_)
                               ? ReadOutcome{want_, 0}
                               : read_at(file.fd.get(), file.mode, buffer_.data(), want_, at_);
  if (!file.mode.direct) drop_pages(file.fd.get(), at_, read.bytes);
  return read;
}

Result<Request*> Lane::after_read(std::size_t chunk) {
  const OpenedFile& source = file_->files().source;
  const ReadOutcome read = take_read(source);
  const auto arrived = Clock::now();
  counters_.spent(Activity::Source, arrived - started_);
  if (read.error != 0) return source.tree->failed(read.error, "reading", source.path);
  if (read.bytes < want_) {
    outcome_.ended_early = true;
    return nullptr;
  }
  (interrupted_ ? early_hasher_ : hasher_).add(std::span<const std::byte>(buffer_.data(), want_));
  counters_.spent(Activity::Hash, (Clock::now() - arrived) * siblings_);
  const OpenedFile* copy = file_->files().copy;
  if (copy == nullptr) {
    file_->moved(want_);
    at_ += want_;
    return next_chunk(chunk);
  }
  Request* request = ask(Request::Kind::Write, *copy, want_);
  // Padding to the alignment, truncated at the end.
  std::memset(buffer_.data() + want_, 0, request->bytes - want_);
  state_ = State::Writing;
  return request;
}

Result<Request*> Lane::after_write(std::size_t chunk) {
  const OpenedFile& copy = *file_->files().copy;
  const std::ptrdiff_t wrote = request_.result;
  int failed = 0;
  if (wrote == -ENOSPC || wrote == -EIO || wrote == -EDQUOT) {
    failed = static_cast<int>(-wrote);
  } else if (wrote < static_cast<std::ptrdiff_t>(request_.bytes)) {
    failed = write_at(copy.fd.get(), copy.mode, buffer_.data(), want_, at_);
  } else if (!copy.mode.direct) {
    failed = write_back_and_drop(copy.fd.get(), at_, want_);
  }
  if (failed != 0) return write_failed(failed, copy);
  counters_.spent(Activity::LocalDrive, Clock::now() - started_);
  file_->moved(want_);
  const std::uint64_t unit = at_ / kViewUnit;
  at_ += want_;
  const std::uint64_t arrived = at_ / kViewUnit - unit;
  if (task_.shows_units && !task_.unit && arrived > 0 && at_ < end_) {
    PieceOutcome part;
    part.units = UnitRange{unit, arrived};
    file_->piece_done(task_.piece, part);
  }
  return next_chunk(chunk);
}

// What readers got has changed on the local drive if the digest is another one.
Result<Request*> Lane::after_read_back(std::size_t chunk) {
  const OpenedFile& copy = *file_->files().copy;
  ReadOutcome read = take_read(copy);
  counters_.spent(Activity::LocalDrive, Clock::now() - started_);
  const std::span<const std::byte> bytes(buffer_.data(), read.bytes);
  hasher_.add(bytes);
  early_hasher_.add(bytes);
  const std::optional<Digest>& early = early_at(at_);
  const bool is_end = at_ + want_ == end_of_unit(at_);
  const bool is_right = read.bytes == want_ && (!is_end || early_hasher_.digest() == *early);
  if (!is_right && read.error == 0) read.error = EIO;
  if (read.error != 0)
    return fail_errno(read.error, "reading back " + copy.tree->shown(copy.path), "its drive may be failing");
  if (is_end) early_hasher_.reset();
  at_ += want_;
  return next_chunk(chunk);
}

Result<Request*> Lane::end() {
  outcome_.digest = hasher_.digest();
  return nullptr;
}

}  // namespace spark::staging
