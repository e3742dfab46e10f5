// The part of one copy in an exchange: its lanes, each a thread with a buffer.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fleet/backlog/backlog.hpp"
#include "fleet/board/board.hpp"
#include "fleet/fetch/peer.hpp"
#include "fleet/fetch/peer_watches.hpp"
#include "fleet/protocol/layout.hpp"
#include "fleet/schedule/schedule.hpp"
#include "staging/copy/exchange.hpp"
#include "staging/copy/lanes/file_work.hpp"
#include "staging/copy/lanes/piece_limit.hpp"
#include "staging/copy/transfer/small_file_copier.hpp"

namespace spark::fleet {

// Shared by all threads of a run.
struct ExchangeContext {
  NodeId self = 0;
  std::string set;
  std::vector<std::unique_ptr<Peer>>& peers;
  Board& board;
  const Layout& layout;
  const std::vector<staging::Entry*>& entry_of;       // index: the layout's file number
  BytesRead& read;                                    // from the source, by this run
  SetState::Reads reads = SetState::Reads::Normally;  // as the board says
  bool has_state = false;  // the set's name has the volume's state, so that all hosts have equal attributes
  // Of the files' content, by the layout's file number, if the set is named by it: what a peer says counts
  // for nothing. Else empty.
  std::vector<staging::Digest> known{};

  std::atomic<Bytes>& read_for(Why why) const { return read[static_cast<std::size_t>(why)]; }
};

class ExchangeRun {
 public:
  ExchangeRun(const ExchangeContext& exchange, staging::ExchangeJob& job);

  Result<> go();
  std::vector<std::string> take_warnings() { return std::move(warnings_); }

 private:
  struct Supplied {
    std::size_t peer;
    staging::Digest digest;
    bool is_written = false;
  };
  // Pieces one of which is wrong. It is the one that differs in the file's right content.
  struct Doubt {
    staging::Digest right;  // of the whole file
    std::multimap<std::uint64_t, Supplied> pieces;
  };
  struct File {
    staging::Entry* entry = nullptr;
    std::uint64_t first_unit = 0;
    std::uint64_t units = 0;  // pieces at the time of the walk
    std::unique_ptr<staging::FileWork> work;
    std::atomic<std::uint64_t> unfinished{0};  // pieces
    // Guarded by mutex_:
    bool only_from_source = false;
    std::optional<staging::Digest> expected;     // of the whole file, as reported by peers that sent pieces
                                                 // without a piece digest
    std::map<std::uint64_t, Supplied> supplied;  // those pieces, by unit
    std::optional<Doubt> doubt;                  // once they turned out to be wrong together
    bool is_asked_again = false;                 // from other peers, then from the source
  };
  enum class Fetched { Whole, Missing, NotNow };
  struct Lane;
  using FilePtr = std::shared_ptr<File>;

  const ExchangeContext& exchange_;
  staging::ExchangeJob& job_;
  Schedule schedule_;
  staging::PieceLimit limit_{std::chrono::steady_clock::now()};  // of files that are not exchanged
  std::mutex mutex_;                                             // guards everything below, and the schedule
  std::condition_variable changed_;                              // for lanes: there may be a unit to get
  std::map<std::uint64_t, FilePtr> open_;                        // key: the layout's file number
  Backlog backlog_;
  std::vector<std::string> warnings_;
  std::optional<Error> error_;
  std::set<std::pair<std::size_t, std::uint64_t>> doubted_;  // of a peer, a unit that it sent wrong once
  PeerWatches watches_;

  void watch(std::size_t peer);
  void work(std::size_t lane);
  std::optional<Choice> next(From first);
  void open_more(Lane& lane, bool for_readers);
  void take_wanted();
  void prove(File& file, std::uint64_t unit);
  Result<> may_read(const Choice& choice, std::string_view path, Bytes offset, Bytes bytes);
  Result<> offer(const FilePtr& file, Lane& lane);
  Result<> copy_here(const FilePtr& file, Lane& lane);
  void close(const FilePtr& file);
  Result<> get_piece(const Choice& choice, Lane& lane);
  Result<> get_pack(const Choice& choice, Lane& lane);
  Result<> pack_from_source(const Choice& choice, Lane& lane);
  Result<Fetched> pack_from_peer(const Choice& choice, Lane& lane);
  std::optional<staging::PieceOutcome> piece_from_peer(File& file, std::size_t want, const Choice& choice,
                                                       Lane& lane);
  bool may_be_offered(File& file, const Choice& choice, const staging::PieceOutcome& outcome);
  Result<> finish_piece(const FilePtr& file, const Choice& choice, const staging::PieceOutcome& outcome,
                        Lane& lane);
  Result<> finish_file(const FilePtr& file, Lane& lane);
  void leave_to_source(File& file);
  bool is_right(const staging::Entry& entry, const staging::Digest& digest);
  void give_up_peer(std::size_t peer, std::string_view path);
  void end();
  void fail_run(Error error);
};

// For a peer that has just failed: it answers, and sends nothing.
std::string warning_of_failing(const Peer& peer);

}  // namespace spark::fleet
