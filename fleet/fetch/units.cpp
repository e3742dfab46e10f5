// Transfers units: from the source or a peer, through the hash, to the copy.
#include <algorithm>

#include "base/text.hpp"
#include "fleet/fetch/lane.hpp"
#include "fleet/fetch/run.hpp"
#include "fleet/fetch/timings.hpp"
#include "staging/files/io/direct_io.hpp"

namespace spark::fleet {
namespace {

std::span<char> chars(const staging::IoBuffer& buffer) {
  return {reinterpret_cast<char*>(buffer.data()), buffer.size()};
}

staging::Digest digest_of(const std::byte* data, std::size_t bytes) {
  staging::Hasher hasher;
  hasher.add(std::span(data, bytes));
  return hasher.digest();
}

}  // namespace

// Offers the pieces of a file that was started or restarted; finishes a file that has none.
Result<> ExchangeRun::offer(const FilePtr& file) {
  for (;;) {
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
    if (!*is_done) {
      leave_to_source(*file);
      continue;
    }
    const std::scoped_lock lock(mutex_);
    std::erase_if(open_, [&](const auto& one) { return one.second == file; });
    return {};
  }
}

Result<> ExchangeRun::perform(const Choice& choice, Lane& lane) {
  return exchange_.layout.is_pack(choice.unit) ? get_pack(choice, lane) : get_piece(choice, lane);
}

Result<> ExchangeRun::get_piece(const Choice& choice, Lane& lane) {
  const Piece piece = exchange_.layout.piece(choice.unit);
  FilePtr file;
  {
    const std::scoped_lock lock(mutex_);
    file = open_.at(piece.file);
  }
  const auto [source, copy] = file->work->files();
  const Bytes offset = piece.piece * staging::kHashPiece;
  const std::size_t want = staging::piece_bytes(source.size, piece.piece);
  if (auto go_on = file->work->before_read(offset, want); !go_on) return go_on;
  staging::PieceOutcome outcome;
  const auto began = std::chrono::steady_clock::now();
  if (choice.peer) {
    PeerRequest request{PeerRequest::Kind::Unit, exchange_.set, choice.unit, 0};
    const auto head = exchange_.peers[*choice.peer]->get(request, chars(lane.buffer), kPatience);
    const bool is_whole = head && head->status == 200 && head->length == want &&
                          (head->piece || head->file) && (job_.context.has_source || head->is_plain);
    job_.context.counters->spent(staging::Activity::Peers, std::chrono::steady_clock::now() - began);
    if (is_whole) outcome.digest = digest_of(lane.buffer.data(), want);
    const bool is_wrong = is_whole && head->piece && *head->piece != outcome.digest;
    const std::scoped_lock lock(mutex_);
    if (is_wrong) give_up_peer(*choice.peer, file->entry->path.view());
    if (!is_whole || is_wrong) {
      schedule_.failed(choice, head.has_value(), std::chrono::steady_clock::now());
      changed_.notify_all();
      return {};
    }
    outcome.is_vouched_for = head->piece.has_value();
    if (!outcome.is_vouched_for) {
      if (file->expected && *file->expected != *head->file) {  // two peers disagree: read it from the source
        schedule_.only_from_source(choice.unit);
        schedule_.failed(choice, true, std::chrono::steady_clock::now());
        return {};
      }
      file->expected = head->file;
      file->suppliers.insert(*choice.peer);
    }
  } else {
    const auto read = staging::read_at(source.fd.get(), source.mode, lane.buffer.data(), want, offset);
    if (!source.mode.direct) staging::drop_pages(source.fd.get(), offset, read.bytes);
    if (read.error != 0) return fail_errno(read.error, "reading " + source.tree->shown(source.path));
    job_.context.counters->spent(staging::Activity::Source, std::chrono::steady_clock::now() - began);
    note_read(choice, read.bytes);
    outcome.ended_early = read.bytes < want;
    outcome.digest = digest_of(lane.buffer.data(), read.bytes);
  }
  const auto written_from = std::chrono::steady_clock::now();
  int failed = outcome.ended_early
                   ? 0
                   : staging::write_at(copy->fd.get(), copy->mode, lane.buffer.data(), want, offset);
  if (failed == 0 && !copy->mode.direct) failed = staging::write_back_and_drop(copy->fd.get(), offset, want);
  if (failed != 0) return fail_errno(failed, "writing " + copy->tree->shown(copy->path));
  job_.context.counters->spent(staging::Activity::LocalDrive,
                               std::chrono::steady_clock::now() - written_from);
  file->work->moved(want);
  if (choice.peer) job_.context.counters->bytes_from_peers += want;
  return finish_piece(file, choice.unit, outcome, choice);
}

Result<> ExchangeRun::finish_piece(const FilePtr& file, std::uint64_t unit,
                                   const staging::PieceOutcome& outcome, const Choice& choice) {
  file->work->piece_done(unit - file->first_unit, outcome);
  if (outcome.is_vouched_for && !outcome.ended_early && !is_of_another_state(*file)) {
    exchange_.board.set_digest(unit, outcome.digest);
    exchange_.board.set_unit(unit, UnitState::HasPiece);
  } else {
    exchange_.board.set_unit(unit, UnitState::Absent);  // peers may have seen it in the state Reading
  }
  Result<> done;
  if (--file->unfinished == 0) {
    const auto is_done = file->work->finish();
    if (!is_done) {
      done = is_done.take_error();
    } else if (!*is_done) {
      const std::uint64_t pieces = staging::piece_count(file->entry->size);
      for (std::uint64_t i = 0; i < pieces; ++i)
        exchange_.board.set_unit(file->first_unit + i, UnitState::Absent);
      leave_to_source(*file);
      done = offer(file);
    } else {
      for (std::uint64_t piece = 0; file->expected && piece < staging::piece_count(file->entry->size);
           ++piece) {
        if (exchange_.board.unit(file->first_unit + piece) == UnitState::HasPiece) continue;
        exchange_.board.set_digest(file->first_unit + piece, file->entry->hash);
        exchange_.board.set_unit(file->first_unit + piece, UnitState::HasFile);
      }
      const std::scoped_lock lock(mutex_);
      std::erase_if(open_, [&](const auto& one) { return one.second == file; });
    }
  }
  {
    const std::scoped_lock lock(mutex_);
    schedule_.done(choice, std::chrono::steady_clock::now());
  }
  changed_.notify_all();
  return done;
}

// The file is read again from the source alone: the peers' data is of the state at the walk, and the file may
// have changed since.
void ExchangeRun::leave_to_source(File& file) {
  const std::scoped_lock lock(mutex_);
  file.only_from_source = true;
  file.expected.reset();
  file.suppliers.clear();
}

bool ExchangeRun::is_of_another_state(const File& file) {
  const std::scoped_lock lock(mutex_);
  return file.only_from_source;
}

// Called by the file's FileWork before the file is finished.
bool ExchangeRun::is_right(const staging::Entry& entry, const staging::Digest& digest) {
  const std::scoped_lock lock(mutex_);
  const auto found =
      std::ranges::find_if(open_, [&](const auto& one) { return one.second->entry == &entry; });
  if (found == open_.end()) return true;
  File& file = *found->second;
  if (!file.expected || *file.expected == digest) return true;
  for (const std::size_t peer : std::exchange(file.suppliers, {})) give_up_peer(peer, entry.path.view());
  file.expected.reset();
  file.only_from_source = true;
  return false;
}

// Requires mutex_.
void ExchangeRun::give_up_peer(std::size_t peer, std::string_view path) {
  schedule_.blame(peer);
  warnings_.push_back("peer " + exchange_.peers[peer]->name() + " sent wrong bytes of " + printable(path) +
                      "; nothing more was taken from it: verify its copy");
}

Result<> ExchangeRun::get_pack(const Choice& choice, Lane& lane) {
  const Pack& pack = exchange_.layout.pack(choice.unit);
  if (auto go_on = job_.context.may_read("", 0, choice.peer ? pack.bytes : 0); !go_on) return go_on;
  Result<> done;
  Fetched fetched = Fetched::Whole;
  if (choice.peer) {
    const auto got = pack_from_peer(choice, lane);
    if (!got) return got.take_error();
    fetched = *got;
  } else {
    std::vector<staging::Entry*> entries;
    for (std::uint64_t i = pack.first; i < pack.first + pack.count; ++i) {
      if (needs_small_[i]) entries.push_back(exchange_.entry_of[exchange_.layout.small(i)]);
    }
    done = pack_from_source(choice, lane, entries);
  }
  if (!done) return done;
  {
    const std::scoped_lock lock(mutex_);
    if (fetched == Fetched::Whole) {
      schedule_.done(choice, std::chrono::steady_clock::now());
    } else {
      schedule_.failed(choice, fetched == Fetched::Missing, std::chrono::steady_clock::now());
    }
  }
  if (fetched == Fetched::Whole) end_pack(choice.unit);
  changed_.notify_all();
  return {};
}

Result<> ExchangeRun::pack_from_source(const Choice& choice, Lane& lane,
                                       const std::vector<staging::Entry*>& entries) {
  std::set<const staging::Entry*> left;
  auto copied = lane.copier.copy(entries, [&](staging::Entry* entry) { left.insert(entry); });
  if (!copied) return copied;
  const Pack& pack = exchange_.layout.pack(choice.unit);
  const std::scoped_lock lock(mutex_);
  for (std::uint64_t i = pack.first; i < pack.first + pack.count; ++i) {
    staging::Entry* entry = exchange_.entry_of[exchange_.layout.small(i)];
    if (!needs_small_[i]) continue;
    if (left.contains(entry)) {
      left_.push_back(entry);
    } else {
      note_read(choice, entry->size);
      exchange_.board.set_small_digest(i, entry->hash);
    }
  }
  return {};
}

// Correct files of a unit that must be fetched again have been written by then and are no longer needed.
Result<ExchangeRun::Fetched> ExchangeRun::pack_from_peer(const Choice& choice, Lane& lane) {
  const Pack& pack = exchange_.layout.pack(choice.unit);
  PeerRequest request{PeerRequest::Kind::Unit, exchange_.set, choice.unit, 0};
  const auto began = std::chrono::steady_clock::now();
  const auto head = exchange_.peers[*choice.peer]->get(request, chars(lane.buffer), kPatience);
  job_.context.counters->spent(staging::Activity::Peers, std::chrono::steady_clock::now() - began);
  if (!head) return Fetched::NotNow;
  if (head->status != 200 || head->length < pack.count * kTableEntry) return Fetched::Missing;
  const std::byte* const end = lane.buffer.data() + head->length;
  const std::byte* content = lane.buffer.data() + pack.count * kTableEntry;
  std::vector<staging::Entry*> left;
  for (std::uint64_t i = 0; i < pack.count; ++i) {
    const std::byte* row = lane.buffer.data() + i * kTableEntry;
    staging::Entry* entry = exchange_.entry_of[exchange_.layout.small(pack.first + i)];
    if (row[0] == std::byte{0}) {
      if (needs_small_[pack.first + i]) left.push_back(entry);
      continue;
    }
    if (static_cast<Bytes>(end - content) < entry->size) return Fetched::Missing;
    const std::byte* const mine = content;
    content += entry->size;
    if (!needs_small_[pack.first + i]) continue;
    const staging::Digest digest = get_digest(row + 1);
    if (digest_of(mine, entry->size) != digest) {
      const std::scoped_lock lock(mutex_);
      give_up_peer(*choice.peer, entry->path.view());
      return Fetched::Missing;
    }
    if (auto written = lane.copier.write(*entry, mine); !written) return written.take_error();
    job_.context.counters->bytes_from_peers += entry->size;
    exchange_.board.set_small_digest(pack.first + i, digest);
    const std::scoped_lock lock(mutex_);
    needs_small_[pack.first + i] = false;
  }
  const std::scoped_lock lock(mutex_);
  left_.insert(left_.end(), left.begin(), left.end());
  return Fetched::Whole;
}

void ExchangeRun::end_pack(std::uint64_t unit) {
  exchange_.board.set_unit(unit, UnitState::HasPiece);
}

void ExchangeRun::fail_run(Error error) {
  {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = std::move(error);
    *job_.context.failed = true;
  }
  end();
}

}  // namespace spark::fleet
