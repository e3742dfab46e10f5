#include "staging/view/view_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.hpp"
#include "base/units.hpp"
#include "staging/copy/transfer/small_files.hpp"
#include "staging/files/metadata.hpp"

namespace spark::staging {
namespace {

using Outcome = ViewRead::Outcome;

// Far below RLIMIT_NOFILE: a set may have a million files.
constexpr std::size_t kMostOpen = 512;

}  // namespace

ViewRange ViewReader::within_file(ViewRange range) const {
  const Bytes size = tree_.node(range.file).entry.size;
  range.offset = std::min(range.offset, size);
  range.bytes = std::min(range.bytes, size - range.offset);
  return range;
}

std::pair<std::uint64_t, std::uint64_t> ViewReader::units_of(const ViewRange& range) const {
  const auto [file, offset, bytes] = within_file(range);
  const std::uint64_t first = tree_.node(file).first_unit;
  if (bytes == 0) return {first, first};
  return {first + offset / kViewUnit, first + (offset + bytes - 1) / kViewUnit + 1};
}

Outcome ViewReader::look(const ViewRange& range) {
  const bool has_failed = map_.has_failed();  // before the units: none arrives afterwards
  // Between the rename that publishes the copy and the note of it a process that begins finds no folder. So
  // does one after a worker that was killed there, until the next attempt's note.
  bool is_missing = !map_.is_published() && !has_copy();
  const auto [first, end] = units_of(range);
  for (std::uint64_t unit = first; unit < end; ++unit) {
    const UnitState state = map_.unit(unit);
    if (state == UnitState::Failed) return Outcome::Failed;
    is_missing = is_missing || state == UnitState::Missing;
  }
  if (!is_missing) return Outcome::Here;
  return has_failed ? Outcome::Failed : Outcome::Missing;
}

void ViewReader::want(const ViewRange& range, ViewMap& map) const {
  const auto [first, end] = units_of(range);
  for (std::uint64_t unit = first; unit < end; ++unit)
    if (map.unit(unit) == UnitState::Missing) map.want(unit, is_small(tree_.node(range.file).entry));
}

ViewRead ViewReader::read(const ViewRange& wanted, const IoBuffer& buffer) {
  const ViewRange range = within_file(wanted);
  for (;;) {
    const std::uint64_t epoch = map_.epoch();
    if (const Outcome outcome = look(range); outcome != Outcome::Here) return {outcome};
    if (range.bytes == 0) return {Outcome::Here};
    std::string why;
    const OpenFilePtr file = open(range.file, epoch, why);
    const Bytes from = file ? round_down(range.offset, file->mode.alignment) : 0;
    const std::size_t before = range.offset - from;
    const ReadOutcome read =
        file ? read_at(file->fd.get(), file->mode, buffer.data(), before + range.bytes, from) : ReadOutcome{};
    if (map_.epoch() != epoch) continue;  // the file may have been emptied or replaced meanwhile
    if (!file || read.error != 0 || read.bytes < before + range.bytes) {
      if (file) why = read.error != 0 ? std::strerror(read.error) : "its copy is too short";
      tell(range.file, why);
      return {Outcome::Failed};
    }
    if (!file->mode.direct) drop_pages(file->fd.get(), from, read.bytes);
    return {Outcome::Here, std::span<const std::byte>(buffer.data() + before, range.bytes)};
  }
}

// Not by its pieces alone: they may all be there before the file is found to have changed, and is emptied.
std::shared_ptr<const UniqueFd> ViewReader::complete(NodeNumber number) {
  const Bytes size = tree_.node(number).entry.size;
  const std::uint64_t epoch = map_.epoch();
  if (look({number, 0, size}) != Outcome::Here) return nullptr;
  std::string why;
  const OpenFilePtr file = open(number, epoch, why);
  struct stat info {};
  if (!file || ::fstat(file->fd.get(), &info) != 0 || static_cast<Bytes>(info.st_size) != size)
    return nullptr;
  return map_.epoch() == epoch ? std::shared_ptr<const UniqueFd>(file, &file->fd) : nullptr;
}

void ViewReader::tell(NodeNumber file, const std::string& why) {
  const std::scoped_lock lock(mutex_);
  if (failed_ && told_.insert(file).second)
    failed_(printable(tree_.node(file).entry.path.view()) + ": " + why);
}

ViewReader::ViewReader(const ViewTree& tree, const ViewMap& map, Failed failed)
    : tree_(tree), map_(map), failed_(std::move(failed)) {
  epoch_ = map_.epoch();
  open_copy();
}

// An attempt may have another folder than the one before it.
void ViewReader::open_copy() {
  auto opened = open_tree(map_.data());
  copy_ = opened ? std::make_shared<const Tree>(std::move(*opened)) : nullptr;
}

// Of the mutex's owner.
void ViewReader::follow(std::uint64_t epoch) {
  const bool is_new = std::exchange(epoch_, epoch) != epoch;
  if (is_new) open_.clear();
  if (is_new || !copy_) open_copy();
}

bool ViewReader::has_copy() {
  const std::scoped_lock lock(mutex_);
  follow(map_.epoch());
  return copy_ != nullptr;
}

// None if it can't be opened.
ViewReader::OpenFilePtr ViewReader::open(NodeNumber file, std::uint64_t epoch, std::string& why_not) {
  std::shared_ptr<const Tree> copy;
  {
    const std::scoped_lock lock(mutex_);
    follow(epoch);
    if (open_.size() >= kMostOpen) open_.clear();
    if (const auto there = open_.find(file); there != open_.end()) return there->second;
    copy = copy_;
  }
  why_not = "the folder with its copy can't be opened";
  if (!copy) return nullptr;
  auto opened = std::make_shared<OpenFile>();
  opened->fd =
      open_beneath(*copy, tree_.node(file).entry.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  why_not = opened->fd ? "it has an ACL, which a live view does not show" : std::strerror(errno);
  if (!opened->fd || has_acl(opened->fd.get())) return nullptr;
  opened->mode = make_direct(opened->fd.get());
  const std::scoped_lock lock(mutex_);
  if (epoch_ == epoch) open_[file] = opened;
  return opened;
}

}  // namespace spark::staging
