#include "fleet/schedule/end_game.hpp"

#include <algorithm>
#include <utility>

namespace spark::fleet {
namespace {

constexpr std::chrono::milliseconds kLookEveryIdle{100};
constexpr std::chrono::milliseconds kPaced{4000};  // an owner's pace is measured over this time

const PeerView* view_of(NodeId node, std::span<const PeerView> peers) {
  const auto found = std::ranges::find_if(
      peers, [node](const PeerView& peer) { return peer.state.node == node && peer.is_staging(); });
  return found == peers.end() ? nullptr : &*found;
}

}  // namespace

void EndGame::added(std::span<const std::uint64_t> units) {
  if (!units.empty()) added_.insert_or_assign(std::ranges::max(units), added_.size());
}

void EndGame::began() {
  ++own_reads_;
  idle_since_.reset();
  owners_.clear();
  found_.clear();
}

std::optional<std::uint64_t> EndGame::find(const View& view, SteadyTime now) {
  if (is_busy()) return std::nullopt;
  if (!idle_since_ || now - looked_at_ >= kLookEveryIdle) {
    if (!idle_since_) idle_since_ = paced_since_ = now;
    looked_at_ = now;
    look(view, now);
    choose(view, now);
  }
  while (!found_.empty()) {
    const std::uint64_t unit = found_.back();
    found_.pop_back();
    if (view.is_free(unit) && std::ranges::find(view.waiting, unit) != view.waiting.end()) return unit;
  }
  return std::nullopt;
}

void EndGame::look(const View& view, SteadyTime now) {
  auto before = std::exchange(owners_, {});
  for (const std::uint64_t unit : view.waiting) {
    const NodeId node = owner_of(unit, view.owners);
    const PeerView* const peer = node == view.self ? nullptr : view_of(node, view.peers);
    if (peer == nullptr) continue;
    Owner& owner = owners_[node];
    if (peer->at(unit) == UnitState::Reading) owner.is_reading = true;
    if (view.is_free(unit)) owner.left.push_back(unit);
  }
  const bool is_over = now - paced_since_ >= kPaced;
  if (is_over) paced_since_ = now;
  for (const auto& [node, was] : before) {
    const PeerView* const peer = view_of(node, view.peers);
    if (peer == nullptr) continue;
    // A unit that another host took over first is no longer among those left when its owner has it.
    const auto begun =
        was.begun + static_cast<std::uint64_t>(std::ranges::count_if(was.left, [peer](std::uint64_t unit) {
          return peer->at(unit) != UnitState::Absent;
        }));
    Owner& owner = owners_[node];
    owner.begun = is_over ? 0 : begun;
    owner.begun_before = is_over ? begun : was.begun_before;
    owner.has_begun = was.has_begun || begun > 0;
  }
}

// Each unit by one host: the one that would own it among those that are not at work on their own shares.
void EndGame::choose(const View& view, SteadyTime now) {
  found_.clear();
  if (now - *idle_since_ < kIdle) return;
  const auto paced = std::max<SteadyTime::duration>(now - paced_since_, kIdle);
  const auto order = [this](NodeId node, std::uint64_t unit) {
    const auto call = added_.lower_bound(unit);
    return std::pair(call == added_.end() ? 0 : call->second, weight(node, ~unit));
  };
  std::vector<NodeId> readers;
  for (const NodeId node : view.owners) {
    const auto owner = owners_.find(node);
    if (owner == owners_.end() || !owner->second.is_reading) readers.push_back(node);
  }
  for (auto& [node, owner] : owners_) {
    if (!owner.has_begun && !owner.is_reading) continue;  // it is about to start
    std::ranges::sort(owner.left, {},
                      [&, owned_by = node](std::uint64_t unit) { return order(owned_by, unit); });
    std::vector<NodeId> others = readers;
    std::erase(others, node);
    const auto soon =
        static_cast<std::size_t>(std::max(owner.begun * kSoon / paced, owner.begun_before * kSoon / kPaced));
    for (std::size_t i = soon; i < owner.left.size(); ++i)
      if (owner_of(owner.left[i], others) == view.self) found_.push_back(owner.left[i]);
  }
}

}  // namespace spark::fleet
