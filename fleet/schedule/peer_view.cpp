#include "fleet/schedule/peer_view.hpp"

#include <algorithm>
#include <utility>

namespace spark::fleet {
namespace {

constexpr unsigned kMostChanges = 16;  // that count: a peer that stages the set again and again

}  // namespace

void PeerView::heard(SetState now_there, SteadyTime now) {
  const auto has_now = static_cast<std::uint64_t>(std::ranges::count_if(now_there.units, has));
  // What it claims and takes back is no progress.
  const bool begins = now_there.kind != state.kind && ++changes <= kMostChanges;
  if (begins || has_now > most_had) moved_at = now;
  if (now_there.kind != state.kind) missing.clear();
  most_had = begins ? has_now : std::max(most_had, has_now);
  heard_at = now;
  is_silent = false;
  state = std::move(now_there);
  if (is_staging()) staged = state.reads;
  std::map<std::uint64_t, SteadyTime> since;
  for (std::uint64_t unit = 0; state.reads == Reads::Slowly && unit < state.units.size(); ++unit) {
    if (state.units[unit] != UnitState::Reading) continue;
    const auto before = slow_reads.find(unit);
    since.emplace(unit, before == slow_reads.end() ? now : before->second);
  }
  slow_reads = std::move(since);
}

UnitState PeerView::at(std::uint64_t unit) const {
  if (missing.contains(unit)) return UnitState::Absent;
  if (state.kind == SetState::Kind::Published) return UnitState::HasFile;
  return unit < state.units.size() ? state.units[unit] : UnitState::Absent;
}

// A slow host claims many units and then reads one after the other, so each of them has a limit. It is short
// also where `stuck` is long, as for a walk.
bool PeerView::is_awaited(std::uint64_t unit, Reads here, std::chrono::milliseconds stuck,
                          SteadyTime now) const {
  if (at(unit) != UnitState::Reading || now - moved_at >= stuck) return false;
  const auto since = slow_reads.find(unit);
  return here == Reads::Slowly || since == slow_reads.end() || now - since->second < std::min(stuck, kStuck);
}

bool PeerView::comes_before(NodeId self, Reads here, std::uint64_t unit) const {
  if (!staged || *staged == Reads::Never) return false;
  if (*staged != here) return *staged < here;
  return weight(state.node, unit) > weight(self, unit);
}

bool is_at_one_of(std::span<const PeerView> peers, std::uint64_t unit, SetState::Reads here,
                  std::chrono::milliseconds stuck, SteadyTime now) {
  return std::ranges::any_of(peers, [&](const PeerView& peer) {
    return peer.delivers() && (has(peer.at(unit)) || peer.is_awaited(unit, here, stuck, now));
  });
}

}  // namespace spark::fleet
