// Decides what is got next and from where: the thinking of an exchange, without its network and its drives.
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

// An owner that answers, and got nothing for so long, is no longer waited for.
inline constexpr std::chrono::milliseconds kStuck{10'000};
// What depends on time alone is looked at again after so long.
inline constexpr std::chrono::milliseconds kLookAgain{100};
// A host that asked for this set, before its own answer is in, counts as staging it for so long.
inline constexpr std::chrono::milliseconds kUnheard{3000};

enum class From { Source, Peers };

struct Choice {
  std::uint64_t unit = 0;
  std::optional<std::size_t> peer;  // none: the source
};

// Used by one thread at a time.
class Schedule {
 public:
  // `at_once`: units that are got from one peer at the same time, at most.
  // `stuck`: how long an owner that answers and gets nothing is waited for.
  Schedule(NodeId self, std::size_t peers, unsigned at_once, std::chrono::milliseconds stuck = kStuck);

  // Units to get. Those that this host owns while all known hosts take part come first.
  void add(std::span<const std::uint64_t> units);
  void only_from_source(std::uint64_t unit);
  void without_source(SteadyTime now);
  // Without a source: for kStuck no peer had anything that is still to be got.
  bool is_hopeless(SteadyTime now) const;

  // What a peer answered; what hosts asked this one (see Board::members).
  void heard(std::size_t peer, SetState state, SteadyTime now);
  void asked_by(std::span<const NodeId> nodes, SteadyTime now);
  void blame(std::size_t peer);  // what it sent was wrong: nothing more is got from it

  // The next unit, as `first` prefers; none now. It is under way until done() or failed().
  std::optional<Choice> next(From first, SteadyTime now);
  // Whether to read it from the source still; asked once others can see that this host does.
  bool is_still_mine(std::uint64_t unit, SteadyTime now) const;
  void done(const Choice& choice);
  void failed(const Choice& choice, bool is_missing_there);  // it is to be got again

  bool is_empty() const { return waiting_.empty() && under_way_ == 0; }
  std::size_t size() const { return waiting_.size(); }
  std::uint64_t looks() const { return looks_; }  // at one unit each, since the start

 private:
  struct Peer {
    SetState state;
    SteadyTime heard_at{}, moved_at{};
    std::uint64_t had = 0;
    unsigned under_way = 0;
    bool is_blamed = false;
    std::set<std::uint64_t> missing;  // units that it does not have after all
  };
  // Units before it can't be got this way now, as long as no host tells anything new.
  struct Cursor {
    std::size_t at = 0;
    SteadyTime since{};
  };
  NodeId self_;
  unsigned at_once_;
  std::chrono::milliseconds stuck_;
  std::vector<Peer> peers_;
  std::map<NodeId, SteadyTime> asked_;  // since when
  std::vector<std::uint64_t> waiting_;  // in the order in which they are read from the source
  std::set<std::uint64_t> source_only_;
  std::size_t under_way_ = 0;
  bool has_source_ = true;
  SteadyTime chosen_at_{};  // the last unit; without a source
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
