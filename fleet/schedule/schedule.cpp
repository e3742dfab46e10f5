#include "fleet/schedule/schedule.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace spark::fleet {

using Reads = SetState::Reads;

namespace {

constexpr std::size_t kMostWanted = 64;  // readers ask again for what they wait for

bool contains(const std::vector<std::uint64_t>& units, std::uint64_t unit) {
  return std::ranges::find(units, unit) != units.end();
}

// The wanted unit first, then the rest of its file.
void bring_forward(const WantedUnit& wanted, std::vector<std::uint64_t>& units) {
  const auto is_of_file = [&](std::uint64_t unit) { return unit >= wanted.unit && unit < wanted.end; };
  const auto others = std::stable_partition(units.begin(), units.end(), is_of_file);
  std::sort(units.begin(), others);
}

bool is_of_own_share(const Choice& choice) {
  return !choice.peer && choice.why != Why::Slow;
}

// False after this host itself was stopped: what it knows of the others is old.
bool is_up_to_date(std::span<const PeerView> peers, SteadyTime now) {
  bool has_live = false;
  for (const PeerView& peer : peers) {
    if (peer.is_live() && now - peer.heard_at < kSilent) return true;
    has_live = has_live || peer.is_live();
  }
  return !has_live;
}

// For a unit of its own share that a host reads from the source.
Why why_owned(std::uint64_t unit, NodeId self, Reads reads, std::span<const PeerView> peers,
              std::chrono::milliseconds stuck, SteadyTime now) {
  bool is_refused = false;
  for (const PeerView& peer : peers) {
    const bool is_before = peer.comes_before(self, reads, unit);
    if (is_before && peer.state.kind == SetState::Kind::None) return Why::Gone;
    if (is_before && !peer.is_blamed && !peer.is_live()) return Why::Silent;
    if (is_before && now - peer.moved_at >= stuck) return Why::Stuck;
    is_refused = is_refused || peer.is_blamed || peer.is_failing || peer.missing.contains(unit);
  }
  return is_refused ? Why::Refused : Why::Owner;
}

}  // namespace

Schedule::Schedule(NodeId self, std::size_t peers, unsigned at_once, std::chrono::milliseconds stuck)
    : self_(self), limits_{at_once, stuck}, peers_(peers) {}

void Schedule::add(std::span<const std::uint64_t> units) {
  std::vector<NodeId> known;
  for (const PeerView& peer : peers_) {
    if (peer.state.node != 0) known.push_back(peer.state.node);
  }
  struct Ranked {
    std::size_t rank;
    std::uint64_t order, unit;
  };
  std::vector<Ranked> ranked;
  ranked.reserve(units.size());
  // Each host orders units of equal rank differently, so that two hosts that join together read different
  // units.
  for (const std::uint64_t unit : units)
    ranked.push_back({rank_of(self_, unit, known), weight(self_, ~unit), unit});
  std::ranges::sort(ranked, [](const Ranked& a, const Ranked& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.order < b.order;
  });
  for (const Ranked& one : ranked) waiting_.push_back(one.unit);
  end_game_.added(units);
  for (const WantedUnit& wanted : wanted_)
    if (std::ranges::find(units, wanted.unit) != units.end()) bring_forward(wanted, waiting_);
}

void Schedule::want(const WantedUnit& wanted) {
  if (is_wanted(wanted.unit)) return;
  if (wanted_.size() >= kMostWanted)
    std::erase_if(wanted_, [this](const WantedUnit& one) { return !contains(waiting_, one.unit); });
  if (wanted_.size() >= kMostWanted) return;
  wanted_.push_back(wanted);
  bring_forward(wanted, waiting_);
  at_ = {};
}

bool Schedule::is_wanted(std::uint64_t unit) const {
  return std::ranges::find(wanted_, unit, &WantedUnit::unit) != wanted_.end();
}

void Schedule::only_from_source(std::uint64_t unit) {
  source_only_.insert(unit);
  at_ = {};
}

void Schedule::reads_as(Reads how, SteadyTime now) {
  reads_ = how;
  chosen_at_ = now;
  at_ = {};
}

bool Schedule::is_hopeless(SteadyTime now) const {
  return reads_ == Reads::Never && !waiting_.empty() && under_way_ == 0 && now - chosen_at_ > kStuck;
}

void Schedule::heard(std::size_t index, SetState state, SteadyTime now) {
  asked_.erase(state.node);
  PeerView& peer = peers_[index];
  peer.heard(std::move(state), now);
  undelivered_.delivered([&](std::uint64_t unit) { return has(peer.at(unit)); });
  at_ = {};
}

void Schedule::unheard(std::size_t index, SteadyTime now) {
  PeerView& peer = peers_[index];
  if (peer.is_silent || now - peer.heard_at < kSilent) return;
  peer.is_silent = true;
  at_ = {};
}

void Schedule::asked_by(std::span<const NodeId> nodes, SteadyTime now) {
  for (const NodeId node : nodes) {
    const bool is_heard = std::ranges::any_of(
        peers_, [&](const PeerView& peer) { return peer.state.node == node && peer.is_staging(); });
    // A node chooses its number: one with ever new ones is not waited for as if it were many.
    const bool is_plausible = asked_.size() < 2 * peers_.size() || asked_.contains(node);
    if (!is_heard && is_plausible && asked_.emplace(node, now).second) at_ = {};
  }
}

bool Schedule::blame(std::size_t peer, std::optional<std::uint64_t> doubted) {
  at_ = {};
  if (doubted) return peers_[peer].missing.insert(*doubted).second;
  if (std::exchange(peers_[peer].is_blamed, true)) return false;
  // What others sent together with its bytes may be right, and without a source there is no other place.
  if (reads_ == SetState::Reads::Never)
    for (PeerView& other : peers_) other.missing.clear();
  return true;
}

// Hosts that read slowly own units only if none reads normally.
std::vector<NodeId> Schedule::owners(SteadyTime now) const {
  std::vector<NodeId> normal, slow;
  const auto add = [&](NodeId node, Reads reads) {
    if (reads == Reads::Normally) normal.push_back(node);
    if (reads == Reads::Slowly) slow.push_back(node);
  };
  add(self_, reads_);
  for (const PeerView& peer : peers_) {
    if (peer.delivers() && peer.is_staging() && now - peer.moved_at < limits_.stuck)
      add(peer.state.node, peer.state.reads);
  }
  for (const auto& [node, since] : asked_) {
    if (now - since < kUnheard) add(node, Reads::Normally);
  }
  return normal.empty() ? slow : normal;
}

bool Schedule::is_for_source(std::uint64_t unit, std::span<const NodeId> owners, SteadyTime now) const {
  if (reads_ == Reads::Never) return false;
  if (source_only_.contains(unit)) return true;
  return owner_of(unit, owners) == self_ && !is_at_one_of(peers_, unit, reads_, limits_.stuck, now);
}

// `is_part`: a peer that vouches for the whole file alone does not help.
std::optional<std::size_t> Schedule::peer_with(std::uint64_t unit, SteadyTime now, bool is_part) const {
  std::optional<std::size_t> best;
  if (source_only_.contains(unit)) return best;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const PeerView& peer = peers_[i];
    if (!peer.is_live() || now < peer.rests_until || peer.under_way >= limits_.at_once || !has(peer.at(unit)))
      continue;
    if (is_part && peer.at(unit) != UnitState::HasPiece) continue;
    // What a peer that stages the set has is not asked of one that has all of it: the others need that one
    // for the rest. Each host prefers a different peer, so that requests are spread over all peers.
    const auto order = [this](const PeerView& one) {
      return std::tuple(!one.is_staging(), one.under_way, weight(one.state.node, self_));
    };
    if (!best || order(peer) < order(peers_[*best])) best = i;
  }
  return best;
}

std::optional<Choice> Schedule::find_at_source(SteadyTime now) {
  if (now - at_.source.since > kLookAgain) at_.source = {0, now};
  if (!is_up_to_date(peers_, now)) return std::nullopt;
  const auto all = owners(now);
  for (; at_.source.at < waiting_.size(); ++at_.source.at) {
    const std::uint64_t unit = waiting_[at_.source.at];
    ++looks_;
    if (!is_for_source(unit, all, now)) continue;
    const Why why = source_only_.contains(unit) ? Why::Changed
                                                : why_owned(unit, self_, reads_, peers_, limits_.stuck, now);
    return take({unit, std::nullopt, why}, at_.source.at, now);
  }
  return std::nullopt;
}

// Of the first units that peers have, one that the fewest hosts have: if its only holder fails, it is lost.
std::optional<Choice> Schedule::find_at_peers(SteadyTime now) {
  constexpr std::size_t kCompared = 32;
  if (now - at_.peers.since > kLookAgain) at_.peers = {0, now};
  std::optional<Choice> best;
  std::size_t best_at = 0, compared = 0;
  std::ptrdiff_t fewest = 0;
  for (std::size_t at = at_.peers.at; at < waiting_.size() && compared < kCompared; ++at) {
    const std::uint64_t unit = waiting_[at];
    ++looks_;
    const auto peer = peer_with(unit, now);
    if (!peer) {
      if (!best) at_.peers.at = at + 1;
      continue;
    }
    ++compared;
    const auto count = std::ranges::count_if(
        peers_, [&](const PeerView& one) { return one.is_live() && has(one.at(unit)); });
    if (best && count >= fewest) continue;
    best = Choice{unit, peer};
    best_at = at;
    fewest = count;
    if (count <= 1) break;
  }
  if (!best) return std::nullopt;
  return take(*best, best_at, now);
}

std::optional<Choice> Schedule::find_of_slow(SteadyTime now) {
  if (reads_ != Reads::Normally || !is_up_to_date(peers_, now)) return std::nullopt;
  const auto all = owners(now);
  const std::function<bool(std::uint64_t)> is_free = [&](std::uint64_t unit) {
    return !is_at_one_of(peers_, unit, reads_, limits_.stuck, now);
  };
  const auto unit = end_game_.find({self_, waiting_, peers_, all, is_free}, now);
  if (!unit) return std::nullopt;
  const auto at = std::ranges::find(waiting_, *unit) - waiting_.begin();
  return take({*unit, std::nullopt, Why::Slow}, static_cast<std::size_t>(at), now);
}

Choice Schedule::take(const Choice& choice, std::size_t at, SteadyTime now) {
  chosen_at_ = now;
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
  for (Cursor* cursor : {&at_.source, &at_.peers})
    if (cursor->at > at) --cursor->at;
  ++under_way_;
  // A slow host fetches late, so what this host reads waits for none.
  const bool has_others = std::ranges::any_of(peers_, [&](const PeerView& peer) {
    return peer.is_live() && peer.is_staging() &&
           (peer.state.reads != Reads::Slowly || reads_ == Reads::Slowly);
  });
  if (is_of_own_share(choice)) end_game_.began();
  if (choice.peer) {
    ++peers_[*choice.peer].under_way;
  } else if (has_others && choice.why != Why::Changed) {
    undelivered_.begun(choice.unit);
  }
  return choice;
}

std::optional<Choice> Schedule::next(From first, SteadyTime now) {
  // Neither the owner's turn nor a peer that reads the unit is waited for. Two hosts may then read it.
  for (const WantedUnit& wanted : wanted_) {
    const auto at = std::ranges::find(waiting_, wanted.unit);
    if (at == waiting_.end()) continue;
    const auto peer = peer_with(wanted.unit, now, wanted.is_part);
    if (!peer && reads_ == Reads::Never) continue;
    const Why why = source_only_.contains(wanted.unit) ? Why::Changed : Why::Wanted;
    return take({wanted.unit, peer, why}, static_cast<std::size_t>(at - waiting_.begin()), now);
  }
  if (first == From::Wanted) return std::nullopt;
  const bool is_ahead = first == From::Source ? undelivered_.are_many_late(now) : undelivered_.are_many();
  const bool is_source_first = first != From::Peers && !is_ahead;
  auto choice = is_source_first ? find_at_source(now) : find_at_peers(now);
  if (!choice) choice = is_source_first ? find_at_peers(now) : find_at_source(now);
  return choice ? choice : find_of_slow(now);
}

bool Schedule::is_still_mine(const Choice& choice, SteadyTime now) const {
  if (choice.why == Why::Slow) return !is_at_one_of(peers_, choice.unit, reads_, limits_.stuck, now);
  const auto all = owners(now);
  return is_for_source(choice.unit, all, now);
}

void Schedule::done(const Choice& choice, SteadyTime now) {
  --under_way_;
  if (is_of_own_share(choice)) end_game_.ended();
  // It may have to be got again for its readers.
  std::erase_if(wanted_, [&](const WantedUnit& one) {
    return one.unit == choice.unit && !contains(waiting_, one.unit);
  });
  undelivered_.read(choice.unit, now);
  if (!choice.peer) return;
  PeerView& peer = peers_[*choice.peer];
  peer.failures = 0;
  if (std::exchange(peer.is_failing, false)) at_ = {};
  if (peer.under_way-- == limits_.at_once) at_.peers = {};  // a slot is free
}

bool Schedule::failed(const Choice& choice, bool is_missing_there, SteadyTime now) {
  bool is_new = false;
  --under_way_;
  if (is_of_own_share(choice)) end_game_.ended();
  if (choice.peer) {
    PeerView& peer = peers_[*choice.peer];
    --peer.under_way;
    if (is_missing_there) {
      peer.missing.insert(choice.unit);
    } else if (now >= peer.rests_until) {  // requests that were under way together fail together
      if (peer.failures++ == 0) peer.failing_since = now;
      peer.is_failing = peer.failures >= kMostFailures && now - peer.failing_since >= kUndelivered;
      peer.rests_until = now + (peer.is_failing ? kStuck : kRest);
      is_new = peer.is_failing && !std::exchange(peer.was_failing, true);
    }
  }
  undelivered_.failed(choice.unit);
  waiting_.insert(waiting_.begin(), choice.unit);
  at_ = {};
  return is_new;
}

}  // namespace spark::fleet
