// Transfers pieces of large files: from the source or a peer, through the hash, to the copy.
#include <algorithm>

#include "fleet/fetch/lane.hpp"
#include "fleet/fetch/run.hpp"
#include "fleet/fetch/timings.hpp"

namespace spark::fleet {

// Offers the pieces of a file that was started or restarted; finishes a file that has none.
Result<> ExchangeRun::offer(const FilePtr& file, Lane& lane) {
  for (;;) {
    if (staging::piece_count(file->entry->size) != file->units) return copy_here(file, lane);
    const std::vector<std::uint64_t> pieces = file->work->to_do();
    if (!pieces.empty()) {
      const std::scoped_lock lock(mutex_);
      file->unfinished = pieces.size();
      std::vector<std::uint64_t> units;
      for (const std::uint64_t piece : pieces) units.push_back(file->first_unit + piece);
      if (file->only_from_source)
        std::ranges::for_each(units, [&](auto unit) { schedule_.only_from_source(unit); });
      schedule_.add(units);
      return {};
    }
    const auto is_done = file->work->finish();
    if (!is_done) return is_done.take_error();
    if (*is_done) break;
    leave_to_source(*file);
  }
  close(file);
  return {};
}

// A file that grew or shrank since the walk has another number of pieces than units.
Result<> ExchangeRun::copy_here(const FilePtr& file, Lane& lane) {
  for (bool is_done = false; !is_done;) {
    for (const std::uint64_t piece : file->work->to_do()) {
      const std::size_t bytes = staging::piece_bytes(file->entry->size, piece);
      if (auto go_on = file->work->before_read(piece * staging::kHashPiece, bytes); !go_on) return go_on;
      const auto outcome = lane.read_piece(*file->work, piece, exchange_.read_for(Why::Changed));
      if (!outcome) return outcome.take_error();
      if (auto written = lane.write_piece(*file->work, piece, *outcome); !written) return written;
      file->work->piece_done(piece, *outcome);
    }
    const auto finished = file->work->finish();
    if (!finished) return finished.take_error();
    is_done = *finished;
  }
  close(file);
  return {};
}

void ExchangeRun::close(const FilePtr& file) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(open_, [&](const auto& one) { return one.second == file; });
}

Result<> ExchangeRun::get_piece(const Choice& choice, Lane& lane) {
  const Piece piece = exchange_.layout.piece(choice.unit);
  FilePtr file;
  {
    const std::scoped_lock lock(mutex_);
    file = open_.at(piece.file);
  }
  const std::size_t bytes = staging::piece_bytes(file->entry->size, piece.piece);
  const Bytes offset = piece.piece * staging::kHashPiece;
  if (auto go_on = may_read(choice, file->entry->path, offset, bytes); !go_on) return go_on;
  std::optional<staging::PieceOutcome> outcome;
  if (choice.peer) {
    outcome = piece_from_peer(*file, bytes, choice, lane);
    if (!outcome) return {};
  } else {
    const auto read = lane.read_piece(*file->work, piece.piece, exchange_.read_for(choice.why));
    if (!read) return read.take_error();
    outcome = *read;
  }
  if (auto written = lane.write_piece(*file->work, piece.piece, *outcome); !written) return written;
  if (choice.peer) job_.context.counters->bytes_from_peers += bytes;
  return finish_piece(file, choice, *outcome, lane);
}

// No value if the peer did not send it, or sent wrong bytes: the unit is back in the queue.
std::optional<staging::PieceOutcome> ExchangeRun::piece_from_peer(File& file, std::size_t want,
                                                                  const Choice& choice, Lane& lane) {
  const PeerRequest request{PeerRequest::Kind::Unit, exchange_.set, choice.unit, 0};
  const auto began = std::chrono::steady_clock::now();
  const auto head = exchange_.peers[*choice.peer]->get(request, lane.chars(), kForUnit);
  const bool is_whole = head && head->status == 200 && head->length == want && (head->piece || head->file) &&
                        (job_.context.has_source || head->is_plain);
  job_.context.counters->spent(staging::Activity::Peers, std::chrono::steady_clock::now() - began);
  staging::PieceOutcome outcome;
  if (is_whole) outcome.digest = staging::digest_of(std::span(lane.buffer.data(), want));
  const bool is_known = !exchange_.known.empty() && file.units == 1;
  const bool is_wrong =
      is_whole && ((head->piece && *head->piece != outcome.digest) ||
                   (is_known && exchange_.known[exchange_.layout.piece(choice.unit).file] != outcome.digest));
  const std::scoped_lock lock(mutex_);
  // A peer that still stages the set may have been discarding the file: it is asked again.
  const bool is_doubted = is_wrong && schedule_.peer(*choice.peer).is_staging() &&
                          doubted_.emplace(*choice.peer, choice.unit).second;
  if (is_wrong && !is_doubted) give_up_peer(*choice.peer, file.entry->path.view());
  if (!is_whole || is_wrong) {
    const bool is_missing = head.has_value() && !is_doubted;
    if (schedule_.failed(choice, is_missing, std::chrono::steady_clock::now()))
      warnings_.push_back(warning_of_failing(*exchange_.peers[*choice.peer]));
    changed_.notify_all();
    return std::nullopt;
  }
  outcome.is_vouched_for = head->piece.has_value() || is_known;
  if (outcome.is_vouched_for) return outcome;
  if (file.expected && *file.expected != *head->file) {
    if (exchange_.known.empty()) {  // two peers disagree: read it from the source
      schedule_.only_from_source(choice.unit);
    } else {
      give_up_peer(*choice.peer, file.entry->path.view());
    }
    schedule_.failed(choice, true, std::chrono::steady_clock::now());
    return std::nullopt;
  }
  file.expected = head->file;
  file.supplied.insert_or_assign(choice.unit, Supplied{*choice.peer, outcome.digest, false});
  return outcome;
}

// A file of the source that is being changed is not offered, although its change is found only at its end: a
// peer's own file may be unchanged.
bool ExchangeRun::may_be_offered(File& file, const Choice& choice, const staging::PieceOutcome& outcome) {
  if (!outcome.is_vouched_for || outcome.ended_early) return false;
  {
    const std::scoped_lock lock(mutex_);
    if (file.only_from_source) return false;
  }
  return choice.peer ||
         staging::is_unchanged(*file.entry, file.work->files().source.fd.get()).value_or(false);
}

Result<> ExchangeRun::finish_piece(const FilePtr& file, const Choice& choice,
                                   const staging::PieceOutcome& outcome, Lane& lane) {
  if (may_be_offered(*file, choice, outcome)) {
    exchange_.board.set_digest(choice.unit, outcome.digest);
    exchange_.board.set_unit(choice.unit, UnitState::HasPiece);
  } else {
    exchange_.board.set_unit(choice.unit, UnitState::Absent);  // peers may have seen it in the state Reading
  }
  file->work->piece_done(choice.unit - file->first_unit, outcome);
  {
    const std::scoped_lock lock(mutex_);
    if (file->doubt)
      std::erase_if(file->doubt->pieces, [&](const auto& one) {
        return one.first == choice.unit && one.second.digest == outcome.digest;
      });
    if (const auto one = file->supplied.find(choice.unit); one != file->supplied.end())
      one->second.is_written = true;
  }
  Result<> done;
  if (--file->unfinished == 0) done = finish_file(file, lane);
  {
    const std::scoped_lock lock(mutex_);
    schedule_.done(choice, std::chrono::steady_clock::now());
  }
  changed_.notify_all();
  return done;
}

Result<> ExchangeRun::finish_file(const FilePtr& file, Lane& lane) {
  const auto is_done = file->work->finish();
  if (!is_done) return is_done.take_error();
  if (!*is_done) {
    bool from_peers = false;
    {
      // Pieces that were wrong together come from other peers first.
      const std::scoped_lock lock(mutex_);
      from_peers = file->doubt && !std::exchange(file->is_asked_again, true);
    }
    if (!from_peers) leave_to_source(*file);
    return offer(file, lane);
  }
  const bool is_right = file->expected == file->entry->hash;  // not if it was left out
  for (std::uint64_t i = 0; is_right && i < file->units; ++i) {
    if (exchange_.board.unit(file->first_unit + i) == UnitState::HasPiece) continue;
    exchange_.board.set_digest(file->first_unit + i, file->entry->hash);
    exchange_.board.set_unit(file->first_unit + i, UnitState::HasFile);
  }
  close(file);
  return {};
}

// The file is read again from the source alone: the peers' data is of the state at the walk, and the file may
// have changed since.
void ExchangeRun::leave_to_source(File& file) {
  const std::scoped_lock lock(mutex_);
  file.only_from_source = true;
  file.expected.reset();
  file.supplied.clear();
}

}  // namespace spark::fleet
