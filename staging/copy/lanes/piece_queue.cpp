#include "staging/copy/lanes/piece_queue.hpp"

#include <algorithm>
#include <utility>

namespace spark::staging {
namespace {

constexpr int kMostWishes = 1024;  // at a time, and thus under the mutex

}  // namespace

std::uint64_t PieceQueue::take_file() {
  std::uint64_t index = next_file_;
  if (!to_open_.empty()) {
    index = to_open_.front();
    to_open_.pop_front();
  }
  states_[index] = FileState::Opening;
  while (next_file_ < states_.size() && states_[next_file_] != FileState::Closed) ++next_file_;
  return index;
}

void PieceQueue::add(OpenFilePtr file, std::vector<std::uint64_t> pieces) {
  states_[file->index] = FileState::Opened;
  const auto later = later_.extract(file->index);
  if (!later.empty())
    for (const std::uint64_t unit : later.mapped()) wanted_.add(file->index, unit);
  file->unfinished = pieces.size();
  file->to_do = std::move(pieces);
  file->early.clear();
  open_.push_back(std::move(file));
}

std::optional<PieceQueue::Place> PieceQueue::free_piece() const {
  for (std::size_t i = 0; i < open_.size(); ++i) {
    const OpenFile& file = *open_[i];
    for (std::size_t at = file.to_do.size(); at-- > 0;) {
      const auto early = file.early.find(file.to_do[at]);
      if (early == file.early.end() || early->second.under_way == 0) return Place{i, at};
    }
  }
  return std::nullopt;
}

QueuedTask PieceQueue::take_piece() {
  return take(*free_piece());
}

QueuedTask PieceQueue::take(const Place& place) {
  QueuedTask taken{open_[place.file], {}};
  OpenFile& file = *taken.file;
  const auto piece = file.to_do.begin() + static_cast<std::ptrdiff_t>(place.piece);
  taken.task.piece = *piece;
  file.to_do.erase(piece);
  in_progress_[{file.index, taken.task.piece}];
  if (const auto early = file.early.extract(taken.task.piece); !early.empty())
    taken.task.early = early.mapped().units;
  if (file.to_do.empty()) open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(place.file));
  return taken;
}

bool PieceQueue::collect_wanted() {
  bool found = false;
  for (int i = 0; i < kMostWishes; ++i) {
    const auto wanted = wanted_from_ ? wanted_from_() : std::nullopt;
    if (!wanted) break;
    wanted_.add(wanted->file, wanted->unit);
    found = true;
  }
  return found;
}

// A file's pieces to do are the last first, so the wanted one becomes the last, and those that follow it in
// the file are before it.
std::optional<std::uint64_t> PieceQueue::bring_forward() {
  while (const auto next = wanted_.take()) {
    const WantedUnit wanted{next->first, next->second};
    FileState& state = states_[wanted.file];
    if (state != FileState::Opened) later_[wanted.file].insert(wanted.unit);
    if (std::exchange(state, std::max(state, FileState::Opening)) == FileState::Closed)
      to_open_.push_back(wanted.file);
    const std::uint64_t number = wanted.unit / kUnitsOfPiece;
    if (const auto begun = in_progress_.find({wanted.file, number}); begun != in_progress_.end())
      begun->second.insert(wanted.unit);
    const auto file = std::ranges::find(open_, wanted.file, [](const auto& one) { return one->index; });
    if (file == open_.end()) continue;
    std::vector<std::uint64_t>& to_do = (*file)->to_do;
    const auto piece = std::ranges::find(to_do, number);
    if (piece == to_do.end()) continue;
    std::rotate(to_do.begin(), piece + 1, to_do.end());
    std::rotate(open_.begin(), file, file + 1);
    return wanted.unit;
  }
  return std::nullopt;
}

std::optional<QueuedTask> PieceQueue::take_unit() {
  collect_wanted();
  while (const auto unit = bring_forward()) {
    const OpenFilePtr& file = open_.front();
    const std::uint64_t piece = file->to_do.back();
    const auto [source, copy] = file->work->files();
    if (copy == nullptr || piece_bytes(source.size, piece) <= kViewUnit)
      return take({0, file->to_do.size() - 1});
    OpenFile::Early& early = file->early[piece];
    if (!early.begun.insert(*unit).second) continue;
    ++early.under_way;
    QueuedTask taken{file, {}};
    taken.task.piece = piece;
    taken.task.unit = *unit;
    return taken;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> PieceQueue::take_unit_of(const OpenFile& file, std::uint64_t piece) {
  const auto wanted = in_progress_.find({file.index, piece});
  if (wanted == in_progress_.end() || wanted->second.empty()) return std::nullopt;
  return wanted->second.extract(wanted->second.begin()).value();
}

void PieceQueue::unit_done(OpenFile& file, const LaneTask& task, const PieceOutcome& outcome) {
  OpenFile::Early& early = file.early[task.piece];
  --early.under_way;
  if (!outcome.ended_early) early.units[*task.unit % kUnitsOfPiece] = outcome.digest;
}

}  // namespace spark::staging
