#include "fleet/fetch/schedule.hpp"

#include <algorithm>

namespace spark::fleet {

Schedule::Schedule(NodeId self, std::size_t peers, unsigned at_once, std::chrono::milliseconds stuck)
    : self_(self), at_once_(at_once), stuck_(stuck), peers_(peers) {}

void Schedule::add(std::span<const std::uint64_t> units) {
  std::vector<NodeId> known;
  for (const Peer& peer : peers_) {
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
}

void Schedule::only_from_source(std::uint64_t unit) {
  source_only_.insert(unit);
  look_anew();
}

void Schedule::without_source(SteadyTime now) {
  has_source_ = false;
  chosen_at_ = now;
  look_anew();
}

bool Schedule::is_hopeless(SteadyTime now) const {
  return !has_source_ && !waiting_.empty() && under_way_ == 0 && now - chosen_at_ > kStuck;
}

void Schedule::heard(std::size_t index, SetState state, SteadyTime now) {
  Peer& peer = peers_[index];
  const auto had = static_cast<std::uint64_t>(std::ranges::count_if(state.units, has));
  if (had != peer.had || state.kind != peer.state.kind) peer.moved_at = now;
  peer.had = had;
  peer.heard_at = now;
  asked_.erase(state.node);
  peer.state = std::move(state);
  look_anew();
}

void Schedule::asked_by(std::span<const NodeId> nodes, SteadyTime now) {
  for (const NodeId node : nodes) {
    const bool is_heard = std::ranges::any_of(peers_, [&](const Peer& peer) {
      return peer.state.node == node && peer.state.kind == SetState::Kind::Staging;
    });
    if (!is_heard && asked_.emplace(node, now).second) look_anew();
  }
}

void Schedule::blame(std::size_t peer) {
  peers_[peer].is_blamed = true;
  look_anew();
}

bool Schedule::is_live(const Peer& peer, SteadyTime now) {
  return peer.state.kind != SetState::Kind::None && !peer.is_blamed && now - peer.heard_at < kSilent;
}

UnitState Schedule::state_of(const Peer& peer, std::uint64_t unit) {
  if (peer.missing.contains(unit)) return UnitState::Absent;
  if (peer.state.kind == SetState::Kind::Published) return UnitState::HasFile;
  return unit < peer.state.units.size() ? peer.state.units[unit] : UnitState::Absent;
}

std::vector<NodeId> Schedule::owners(SteadyTime now) const {
  std::vector<NodeId> all{self_};
  for (const Peer& peer : peers_) {
    if (is_live(peer, now) && peer.state.kind == SetState::Kind::Staging && now - peer.moved_at < stuck_)
      all.push_back(peer.state.node);
  }
  for (const auto& [node, since] : asked_) {
    if (now - since < kUnheard) all.push_back(node);
  }
  return all;
}

bool Schedule::is_for_source(std::uint64_t unit, std::span<const NodeId> owners, SteadyTime now) const {
  if (!has_source_) return false;
  if (source_only_.contains(unit)) return true;
  if (owner_of(unit, owners) != self_) return false;
  return std::ranges::none_of(peers_, [&](const Peer& peer) {
    const bool counts =
        is_live(peer, now) && (peer.state.kind == SetState::Kind::Published || now - peer.moved_at < stuck_);
    return counts && state_of(peer, unit) != UnitState::Absent;
  });
}

std::optional<std::size_t> Schedule::peer_with(std::uint64_t unit, SteadyTime now) const {
  std::optional<std::size_t> best;
  if (source_only_.contains(unit)) return best;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const Peer& peer = peers_[i];
    if (!is_live(peer, now) || peer.under_way >= at_once_ || !has(state_of(peer, unit))) continue;
    // Each host prefers a different peer, so that requests are spread over all peers.
    const auto before = [&](const Peer& other) {
      return std::pair(peer.under_way, weight(peer.state.node, self_)) <
             std::pair(other.under_way, weight(other.state.node, self_));
    };
    if (!best || before(peers_[*best])) best = i;
  }
  return best;
}

std::optional<Choice> Schedule::find(From from, SteadyTime now) {
  Cursor& cursor = from == From::Source ? at_source_ : at_peers_;
  if (now - cursor.since > kLookAgain) cursor = {0, now};
  const auto all = from == From::Source ? owners(now) : std::vector<NodeId>{};
  for (; cursor.at < waiting_.size(); ++cursor.at) {
    const std::uint64_t unit = waiting_[cursor.at];
    ++looks_;
    if (from == From::Source) {
      if (is_for_source(unit, all, now)) return Choice{unit, std::nullopt};
    } else if (const auto peer = peer_with(unit, now)) {
      return Choice{unit, peer};
    }
  }
  return std::nullopt;
}

std::optional<Choice> Schedule::next(From first, SteadyTime now) {
  auto choice = find(first, now);
  std::size_t at = (first == From::Source ? at_source_ : at_peers_).at;
  if (!choice) {
    const From second = first == From::Source ? From::Peers : From::Source;
    choice = find(second, now);
    at = (second == From::Source ? at_source_ : at_peers_).at;
  }
  if (!choice) return std::nullopt;
  chosen_at_ = now;
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
  for (Cursor* cursor : {&at_source_, &at_peers_})
    if (cursor->at > at) --cursor->at;
  ++under_way_;
  if (choice->peer) ++peers_[*choice->peer].under_way;
  return choice;
}

bool Schedule::is_still_mine(std::uint64_t unit, SteadyTime now) const {
  const auto all = owners(now);
  return is_for_source(unit, all, now);
}

void Schedule::done(const Choice& choice) {
  --under_way_;
  if (choice.peer && peers_[*choice.peer].under_way-- == at_once_) at_peers_ = {};  // a slot is free
}

void Schedule::failed(const Choice& choice, bool is_missing_there) {
  done(choice);
  if (choice.peer && is_missing_there) peers_[*choice.peer].missing.insert(choice.unit);
  waiting_.insert(waiting_.begin(), choice.unit);
  look_anew();
}

}  // namespace spark::fleet
