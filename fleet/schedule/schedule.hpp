// Decides the next unit and its origin: the logic of an exchange, without network and drives.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "fleet/backlog/wanted_units.hpp"
#include "fleet/board/board.hpp"
#include "fleet/protocol/owner.hpp"
#include "fleet/protocol/set_state.hpp"
#include "fleet/schedule/end_game.hpp"
#include "fleet/schedule/peer_view.hpp"
#include "fleet/schedule/undelivered.hpp"

namespace spark::fleet {

// Interval of rechecking decisions that depend only on time.
inline constexpr std::chrono::milliseconds kLookAgain{100};
// A host that asked for this set counts as staging it for this time, until its own answer arrives.
inline constexpr std::chrono::milliseconds kUnheard{3000};
// A peer that failed to send a unit is not asked for units for this time.
inline constexpr std::chrono::milliseconds kRest{500};
// A peer that failed this many times in a row, over this time at least, counts as having no units. A slow one
// sends some in between. It is asked again after kStuck.
inline constexpr unsigned kMostFailures = 3;
inline constexpr std::chrono::milliseconds kUndelivered{30'000};

// Source: peers come first only while peers are late to fetch what this host read.
// Balanced: they come first while any kMostUndelivered units that it read are on no other host.
// Wanted: only units that readers wait for.
enum class From { Source, Balanced, Peers, Wanted };

// Why a unit is read from the source.
enum class Why {
  Owner,    // this host owns it among the hosts known to stage the set
  Silent,   // a host that ranks before this one does not answer
  Gone,     // such a host no longer stages the set
  Stuck,    // such a host answers and makes no progress
  Refused,  // a peer has it, but did not send it or sent wrong bytes
  Changed,  // the file differs from the one at the walk, or two peers disagree
  Wanted,   // a reader waits for it, and no peer can send it now
  Slow,     // its owner has not begun it, and this host has read its own share
};
inline constexpr std::string_view kWhy[] = {"owner",   "silent",  "gone",   "stuck",
                                            "refused", "changed", "wanted", "slow"};
using BytesRead = std::array<std::atomic<Bytes>, std::size(kWhy)>;  // index: Why

struct Choice {
  std::uint64_t unit = 0;
  std::optional<std::size_t> peer{};  // no value: from the source
  Why why = Why::Owner;               // only from the source
};

// Not thread-safe.
class Schedule {
 public:
  // `at_once` is the maximum of units to fetch from one peer at the same time. `stuck` is the time to wait
  // for an owner that answers but makes no progress.
  Schedule(NodeId self, std::size_t peers, unsigned at_once, std::chrono::milliseconds stuck = kStuck);

  // Adds units to get. Those that this host owns among all known hosts come first.
  void add(std::span<const std::uint64_t> units);
  void only_from_source(std::uint64_t unit);
  // A reader waits for it, whether it has been added yet or not: until it is done it goes before all others,
  // from the source if no peer can send it now, and the rest of its file after it.
  void want(const WantedUnit& wanted);
  // Whether a reader waits for it, also if it is under way.
  bool is_wanted(std::uint64_t unit) const;
  // How this host reads the source, before the first call of next().
  void reads_as(SetState::Reads how, SteadyTime now);
  // Without a source: true if for kStuck no peer had any of the remaining units.
  bool is_hopeless(SteadyTime now) const;

  // Record a peer's answer, that a request to it failed, and the hosts that asked this one (see
  // Board::members()). Only a failed request makes a peer silent: if this host itself was stopped or slow,
  // its last answers are old although the peers are well.
  void heard(std::size_t peer, SetState state, SteadyTime now);
  void unheard(std::size_t peer, SteadyTime now);
  void asked_by(std::span<const NodeId> nodes, SteadyTime now);
  const PeerView& peer(std::size_t peer) const { return peers_[peer]; }
  // It sent wrong data: request nothing more from it. False: it was blamed before. Doubted: the unit may be
  // wrong; it is got elsewhere.
  bool blame(std::size_t peer, std::optional<std::uint64_t> doubted = {});

  // The next unit, preferably from `first`; no value if there is none at the moment. The unit is in progress
  // until done() or failed().
  std::optional<Choice> next(From first, SteadyTime now);
  // True if it should still be read from the source; call it after other hosts can see the claim.
  bool is_still_mine(const Choice& choice, SteadyTime now) const;
  void done(const Choice& choice, SteadyTime now);
  // The unit returns to the queue. `is_missing_there`: the peer answered, and does not have it. True if for
  // the first time the peer now counts as having no units because it sends none.
  bool failed(const Choice& choice, bool is_missing_there, SteadyTime now);

  bool is_empty() const { return waiting_.empty() && under_way_ == 0; }
  std::span<const std::uint64_t> waiting() const { return waiting_; }
  std::uint64_t looks() const { return looks_; }  // number of units examined since the start

 private:
  // The units before `at` are not available this way until a host reports a change.
  struct Cursor {
    std::size_t at = 0;
    SteadyTime since{};
  };
  struct Cursors {
    Cursor source, peers;
  };
  struct Limits {
    unsigned at_once;
    std::chrono::milliseconds stuck;
  };
  NodeId self_;
  Limits limits_;
  std::vector<PeerView> peers_;
  std::map<NodeId, SteadyTime> asked_;  // time of the first request
  std::vector<std::uint64_t> waiting_;  // in the order of reading from the source
  std::vector<WantedUnit> wanted_;      // waiting, under way, or not added yet; the first one first
  std::set<std::uint64_t> source_only_;
  Undelivered undelivered_;
  EndGame end_game_;
  std::size_t under_way_ = 0;
  SetState::Reads reads_ = SetState::Reads::Normally;  // by this host
  SteadyTime chosen_at_{};                             // time of the last choice; used without a source
  Cursors at_;  // set to {} when a unit before them may have become available
  std::uint64_t looks_ = 0;

  std::vector<NodeId> owners(SteadyTime now) const;
  bool is_for_source(std::uint64_t unit, std::span<const NodeId> owners, SteadyTime now) const;
  std::optional<std::size_t> peer_with(std::uint64_t unit, SteadyTime now, bool is_part = false) const;
  std::optional<Choice> find_at_source(SteadyTime now);
  std::optional<Choice> find_at_peers(SteadyTime now);
  std::optional<Choice> find_of_slow(SteadyTime now);
  Choice take(const Choice& choice, std::size_t at, SteadyTime now);
};

}  // namespace spark::fleet
