#include "fleet/fetch/peer_exchange.hpp"

#include <atomic>
#include <thread>

#include "base/threads.hpp"
#include "fleet/fetch/run.hpp"
#include "fleet/protocol/file_list.hpp"
#include "fleet/protocol/set_id.hpp"
#include "staging/manifest/lines.hpp"

namespace spark::fleet {
namespace {

constexpr std::chrono::milliseconds kBeat{200};

struct Files {
  Layout layout;
  std::vector<staging::Entry*> entry_of;
  std::string set;
};

Files files_of(staging::Entries& entries, const std::string& state) {
  Files files;
  SetNaming naming(state);
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

Result<> write_list(const std::filesystem::path& path, const Files& files) {
  auto list = staging::LineWriter::create(path);
  if (!list) return list.take_error();
  list->add(list_header(files.entry_of.size()));
  for (const staging::Entry* entry : files.entry_of) list->add(list_line(entry->path, entry->size));
  return list->commit();
}

// What an earlier attempt or an earlier copy left, before this one begins.
class Earlier {
 public:
  Earlier(const Files& files, const staging::ExchangeJob& job, Board& board)
      : files_(files), job_(job), board_(board) {}

  void show() {
    const Layout& layout = files_.layout;
    std::size_t index = 0;
    std::uint64_t small = 0;
    for (std::uint64_t file = 0; file < layout.files(); ++file) {
      const staging::Entry& entry = *files_.entry_of[file];
      while (&job_.entries[index] != &entry) ++index;
      const bool is_there = job_.resumed.finished[index] || job_.resumed.unchanged[index];
      if (Layout::is_packed(entry.size)) {
        if (is_there) board_.set_small_digest(small, entry.hash);
        ++small;
      } else if (is_there) {
        show_whole(file, entry);
      } else if (const auto begun = job_.resumed.begun.find(index); begun != job_.resumed.begun.end()) {
        show_pieces(layout.first_unit_of(file), begun->second);
      }
    }
    show_packs();
  }

 private:
  const Files& files_;
  const staging::ExchangeJob& job_;
  Board& board_;

  void show_whole(std::uint64_t file, const staging::Entry& entry) {
    const std::uint64_t pieces = staging::piece_count(entry.size);
    const std::uint64_t first = files_.layout.first_unit_of(file);
    for (std::uint64_t piece = 0; piece < pieces; ++piece) {
      board_.set_digest(first + piece, entry.hash);
      board_.set_unit(first + piece, pieces == 1 ? UnitState::HasPiece : UnitState::HasFile);
    }
  }

  void show_pieces(std::uint64_t first, const staging::KnownPieces& known) {
    for (std::uint64_t piece = 0; piece < known.size(); ++piece) {
      if (!known[piece]) continue;
      board_.set_digest(first + piece, *known[piece]);
      board_.set_unit(first + piece, UnitState::HasPiece);
    }
  }

  void show_packs() {
    for (std::uint64_t unit = files_.layout.pieces(); unit < files_.layout.units(); ++unit) {
      const Pack& pack = files_.layout.pack(unit);
      bool is_whole = true;
      for (std::uint64_t i = pack.first; i < pack.first + pack.count; ++i)
        is_whole = is_whole && board_.small_digest(i).has_value();
      if (is_whole) board_.set_unit(unit, UnitState::HasPiece);
    }
  }
};

}  // namespace

// While it is there, peers see what this host has.
struct PeerExchange::Presence {
  explicit Presence(std::unique_ptr<Board> its_board)
      : board(std::move(its_board)), beating_(start_thread([this] {
          while (!is_over) {
            board->beat();
            std::this_thread::sleep_for(kBeat);
          }
        })) {}
  ~Presence() {
    is_over = true;
    if (beating_.joinable()) beating_.join();
    board->remove();
  }
  std::unique_ptr<Board> board;
  std::atomic<bool> is_over{false};
  std::thread beating_;
};

PeerExchange::PeerExchange(ExchangeSettings settings) : settings_(std::move(settings)) {}
PeerExchange::~PeerExchange() = default;

void PeerExchange::begin(const std::string& state) {
  state_ = state;
}

Result<> PeerExchange::copy(staging::ExchangeJob& job) {
  const Files files = files_of(job.entries, state_);
  if (files.layout.units() == 0) return {};
  const BoardSize size{files.layout.units(), files.layout.pieces(), files.layout.small_files()};
  auto board = Board::create(settings_.boards, files.set, settings_.data, size);
  if (!board) {
    warnings_.push_back("nothing was exchanged with peers: " + board.error().message());
    return {};
  }
  if (auto written = write_list(Board::list_of(settings_.boards, files.set), files); !written) {
    warnings_.push_back("nothing was exchanged with peers: " + written.error().message());
    return {};
  }
  presence_ = std::make_unique<Presence>(std::move(*board));
  Earlier(files, job, *presence_->board).show();
  const ExchangeContext exchange{settings_.self,    files.set,    settings_.peers,
                                 *presence_->board, files.layout, files.entry_of};
  ExchangeRun run(exchange, job);
  Result<> done = run.go();
  for (std::string& warning : run.take_warnings()) warnings_.push_back(std::move(warning));
  return done;
}

void PeerExchange::published() {
  if (presence_) presence_->board->set_done();
}

std::vector<std::string> PeerExchange::warnings() const {
  return warnings_;
}

}  // namespace spark::fleet
