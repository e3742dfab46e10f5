// Decides the next unit and its origin: the logic of an exchange, without network and drives.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "fleet/board/board.hpp"
#include "fleet/protocol/owner.hpp"
#include "fleet/protocol/set_state.hpp"

namespace spark::fleet {

// Time to wait for an owner that answers but makes no progress.
inline constexpr std::chrono::milliseconds kStuck{10'000};
// Interval of rechecking decisions that depend only on time.
inline constexpr std::chrono::milliseconds kLookAgain{100};
// A host that asked for this set counts as staging it for this time, until its own answer arrives.
inline constexpr std::chrono::milliseconds kUnheard{3000};

enum class From { Source, Peers };

struct Choice {
  std::uint64_t unit = 0;
  std::optional<std::size_t> peer;  // no value: from the source
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
  void without_source(SteadyTime now);
  // Without a source: true if for kStuck no peer had any of the remaining units.
  bool is_hopeless(SteadyTime now) const;

  // Record a peer's answer, and the hosts that asked this one (see Board::members()).
  void heard(std::size_t peer, SetState state, SteadyTime now);
  void asked_by(std::span<const NodeId> nodes, SteadyTime now);
  void blame(std::size_t peer);  // it sent wrong data: request nothing more from it

  // The next unit, preferably from `first`; no value if there is none at the moment. The unit is in progress
  // until done() or failed().
  std::optional<Choice> next(From first, SteadyTime now);
  // True if the unit should still be read from the source; call it after other hosts can see the claim.
  bool is_still_mine(std::uint64_t unit, SteadyTime now) const;
  void done(const Choice& choice);
  void failed(const Choice& choice, bool is_missing_there);  // the unit returns to the queue

  bool is_empty() const { return waiting_.empty() && under_way_ == 0; }
  std::size_t size() const { return waiting_.size(); }
  std::uint64_t looks() const { return looks_; }  // number of units examined since the start

 private:
  struct Peer {
    SetState state;
    SteadyTime heard_at{}, moved_at{};
    std::uint64_t had = 0;
    unsigned under_way = 0;
    bool is_blamed = false;
    std::set<std::uint64_t> missing;  // units that it turned out not to have
  };
  // The units before `at` are not available this way until a host reports a change.
  struct Cursor {
    std::size_t at = 0;
    SteadyTime since{};
  };
  NodeId self_;
  unsigned at_once_;
  std::chrono::milliseconds stuck_;
  std::vector<Peer> peers_;
  std::map<NodeId, SteadyTime> asked_;  // time of the first request
  std::vector<std::uint64_t> waiting_;  // in the order of reading from the source
  std::set<std::uint64_t> source_only_;
  std::size_t under_way_ = 0;
  bool has_source_ = true;
  SteadyTime chosen_at_{};  // time of the last choice; used without a source
  Cursor at_source_, at_peers_;
  std::uint64_t looks_ = 0;

  static bool is_live(const Peer& peer, SteadyTime now);
  static UnitState state_of(const Peer& peer, std::uint64_t unit);
  std::vector<NodeId> owners(SteadyTime now) const;
  bool is_for_source(std::uint64_t unit, std::span<const NodeId> owners, SteadyTime now) const;
  std::optional<std::size_t> peer_with(std::uint64_t unit, SteadyTime now) const;
  std::optional<Choice> find(From from, SteadyTime now);
  void look_anew() { at_source_ = at_peers_ = {}; }
};

}  // namespace spark::fleet
