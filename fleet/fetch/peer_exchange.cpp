#include "fleet/fetch/peer_exchange.hpp"

#include <algorithm>

#include "fleet/fetch/run.hpp"
#include "fleet/fetch/timings.hpp"
#include "fleet/protocol/set_id.hpp"

namespace spark::fleet {
namespace {

constexpr std::uint64_t kMostUnits = 4 * kMostState;

struct Files {
  Layout layout;
  std::vector<staging::Entry*> entry_of;
  std::string set;
};

Files files_of(staging::Entries& entries, const staging::SetOrigin& origin) {
  Files files;
  SetNaming naming(origin);
  for (staging::Entry& entry : entries) {
    if (!staging::is_content(entry)) continue;
    naming.add(entry);
    files.layout.add(entry.size);
    files.entry_of.push_back(&entry);
  }
  files.layout.finish();
  files.set = naming.id();
  return files;
}

void show_whole(std::uint64_t first, const staging::Entry& entry, Board& board) {
  const std::uint64_t pieces = staging::piece_count(entry.size);
  for (std::uint64_t piece = 0; piece < pieces; ++piece) {
    board.set_digest(first + piece, entry.hash);
    board.set_unit(first + piece, pieces == 1 ? UnitState::HasPiece : UnitState::HasFile);
  }
}

void show_pieces(std::uint64_t first, const staging::KnownPieces& known, Board& board) {
  for (std::uint64_t piece = 0; piece < known.size(); ++piece) {
    if (!known[piece]) continue;
    board.set_digest(first + piece, *known[piece]);
    board.set_unit(first + piece, UnitState::HasPiece);
  }
}

void show_packs(const Layout& layout, Board& board) {
  for (std::uint64_t unit = layout.pieces(); unit < layout.units(); ++unit) {
    const Pack& pack = layout.pack(unit);
    bool is_whole = true;
    for (std::uint64_t i = pack.first; i < pack.first + pack.count; ++i)
      is_whole = is_whole && board.small_digest(i).has_value();
    if (is_whole) board.set_unit(unit, UnitState::HasPiece);
  }
}

// Shows peers the results of an earlier attempt or an earlier copy, before this run begins.
void show_earlier(const Files& files, const staging::ExchangeJob& job, Board& board) {
  const Layout& layout = files.layout;
  std::size_t index = 0;
  std::uint64_t small = 0;
  for (std::uint64_t file = 0; file < layout.files(); ++file) {
    const staging::Entry& entry = *files.entry_of[file];
    while (&job.entries[index] != &entry) ++index;
    const bool is_there = job.resumed.finished[index] || job.resumed.unchanged[index];
    if (Layout::is_packed(entry.size)) {
      if (is_there) board.set_small_digest(small, entry.hash);
      ++small;
    } else if (is_there) {
      show_whole(layout.first_unit_of(file), entry, board);
    } else if (const auto begun = job.resumed.begun.find(index); begun != job.resumed.begun.end()) {
      show_pieces(layout.first_unit_of(file), begun->second, board);
    }
  }
  show_packs(layout, board);
}

// Before the content of a large file's copy is discarded.
void withdraw(std::string_view path, const Files& files, Board& board) {
  const auto found = std::ranges::lower_bound(files.entry_of, path, {},
                                              [](const staging::Entry* entry) { return entry->path.view(); });
  if (found == files.entry_of.end() || (*found)->path.view() != path) return;
  const auto file = static_cast<std::uint64_t>(found - files.entry_of.begin());
  const Bytes size = files.layout.size_of(file);  // at the walk
  if (Layout::is_packed(size)) return;
  const std::uint64_t first = files.layout.first_unit_of(file);
  for (std::uint64_t piece = 0; piece < staging::piece_count(size); ++piece)
    board.set_unit(first + piece, UnitState::Absent);
}

}  // namespace

PeerExchange::PeerExchange(ExchangeSettings settings) : settings_(std::move(settings)) {}
PeerExchange::~PeerExchange() = default;

void PeerExchange::begin(const staging::SetOrigin& origin) {
  origin_ = origin;
}

SetState::Reads PeerExchange::reads_if(bool has_source) const {
  if (!has_source) return SetState::Reads::Never;
  return settings_.is_slow ? SetState::Reads::Slowly : SetState::Reads::Normally;
}

Result<staging::Walked> PeerExchange::walk(const Walk& own) {
  if (origin_.state.empty() || settings_.peers.empty()) return own();
  walk_ = std::make_unique<SharedWalk>(settings_.self, SetNaming({origin_.state, ""}).id(), settings_.boards,
                                       settings_.peers, reads_if(!settings_.is_source_away));
  return walk_->get(own);
}

Result<> PeerExchange::copy(staging::ExchangeJob& job) {
  if (!is_exchanged(origin_)) return {};
  const auto all = std::make_shared<const Files>(files_of(job.entries, origin_));
  const Files& files = *all;
  set_ = files.set;
  if (files.layout.units() == 0) return {};
  const BoardSize size{files.layout.units(), files.layout.pieces(), files.layout.small_files()};
  auto board = Board::create(settings_.boards, files.set, settings_.data, size);
  if (!board && board.error().kind == Errc::Unavailable && !job.context.has_source)
    return fail(Errc::Unavailable, "another dataset of this host copies the same content",
                "stage it again when that one is ready");
  if (!board) {
    warnings_.push_back("nothing was exchanged with peers: " + board.error().message());
    return {};
  }
  // In this worker's walk order, from which the server derives the content of each unit.
  const auto list = Board::entries_of(settings_.boards, files.set);
  if (auto written = staging::write_entries(list, {}, job.entries); !written) {
    warnings_.push_back("nothing was exchanged with peers: " + written.error().message());
    return {};
  }
  const auto reads = reads_if(job.context.has_source);
  (*board)->set_reads(reads);
  std::vector<staging::Digest> known;  // before what is copied replaces it in the entries
  for (const staging::Entry* entry : files.entry_of)
    if (is_of_content(origin_.source)) known.push_back(entry->hash);
  presence_ = std::make_unique<Presence>(std::move(*board));
  show_earlier(files, job, presence_->board());
  // Also for files that the caller copies later.
  job.context.discards = [this, all](const staging::Entry& entry) {
    withdraw(entry.path.view(), *all, presence_->board());
  };
  BytesRead read{};
  const ExchangeContext exchange{
      settings_.self, files.set, settings_.peers, presence_->board(),     files.layout,
      files.entry_of, read,      reads,           !origin_.state.empty(), known};
  ExchangeRun run(exchange, job);
  Result<> done = run.go();
  for (std::size_t why = 0; why < std::size(kWhy); ++why)
    if (read[why] != 0) read_because_[kWhy[why]] = read[why].load();
  for (std::string& warning : run.take_warnings()) warnings_.push_back(std::move(warning));
  return done;
}

bool PeerExchange::is_published_elsewhere(const std::string& hash) {
  const PeerRequest request{PeerRequest::Kind::Set, set_, 0, 0};
  return !set_.empty() && std::ranges::any_of(settings_.peers, [&](const auto& peer) {
    const auto text = peer->get_text(request, kMostState, for_state(kSilent));
    const auto state = text ? parse_set_state(*text, kMostUnits) : text.take_error();
    return state && state->kind == SetState::Kind::Published && state->hash == hash;
  });
}

void PeerExchange::published() {
  if (presence_) presence_->board().set_done();
}

std::vector<std::string> PeerExchange::warnings() const {
  return warnings_;
}

}  // namespace spark::fleet
