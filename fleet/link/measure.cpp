#include "fleet/link/measure.hpp"

#include <algorithm>
#include <vector>

#include "base/no_sigpipe.hpp"
#include "fleet/link/bursts.hpp"

namespace spark::fleet {
namespace {

constexpr std::chrono::milliseconds kConnect{2000};

void add_moved(const Moved& moved, WayRate& rate) {
  const auto per_second = [](Bytes bytes, std::chrono::nanoseconds time) {
    return time.count() <= 0 ? 0 : static_cast<double>(bytes) / std::chrono::duration<double>(time).count();
  };
  if (moved.seconds > 0) rate.bytes_per_second = moved.bytes / moved.seconds;
  rate.card_bytes_per_second =
      std::max(per_second(moved.own_card, moved.own), per_second(moved.peer_card, moved.peer));
  if (moved.with_pauses.count() > 0)
    rate.share = static_cast<double>(moved.all.count()) / static_cast<double>(moved.with_pauses.count());
  // Interrupts alone may keep a processor busy.
  rate.own_busy = std::max(rate.own_busy, busy_share({{}, moved.own_load.interrupts}, moved.own));
  rate.peer_busy = std::max(rate.peer_busy, busy_share({{}, moved.peer_load.interrupts}, moved.peer));
}

}  // namespace

Result<LinkEnd> look_at_peer(const std::shared_ptr<Security>& security, const Endpoint& peer,
                             std::chrono::milliseconds patience) {
  const NoSigpipe guard;
  auto connection = LinkConnection::open(security, peer, patience, patience);
  if (!connection) return connection.take_error();
  return connection->end();
}

WayRate measure(const std::shared_ptr<Security>& security, const Endpoint& peer, Way way,
                const MeasureLimits& limits) {
  const NoSigpipe guard;
  WayRate rate;
  std::vector<LinkConnection> connections;
  std::vector<Share> shares;
  while (connections.size() < limits.connections) {
    auto connection = LinkConnection::open(security, peer, kConnect, limits.silence);
    const auto end = connection ? connection->end() : Result<LinkEnd>(fail(connection.error()));
    if (!end) {  // a host has a share of the peer's connections, and its stagings use them too
      rate.error = end.error();
      break;
    }
    shares.emplace_back().peer_before = end->load.thread;
    connections.push_back(std::move(*connection));
  }
  if (connections.empty()) return rate;
  rate.error.reset();
  auto control = LinkConnection::open(security, peer, kConnect, limits.silence);
  Bursts bursts(way, limits, connections, control ? &*control : nullptr);
  if (auto ran = bursts.run(shares); !ran) {
    rate.error = ran.error();
    return rate;
  }
  const Moved& moved = bursts.moved();
  double good = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    Share& share = shares[i];
    if (!share.has_run) continue;
    const auto end = share.error ? Result<LinkEnd>(fail(*share.error)) : connections[i].end();
    if (!end) {
      rate.error = end.error();
      continue;
    }
    ++good;
    rate.own_busy += busy_share({share.busy, {}}, moved.all);
    rate.peer_busy += busy_share({end->load.thread - share.peer_before, {}}, moved.all);
    rate.limit = way == Way::From ? end->limit : limits.rate;
  }
  if (good == 0) {
    if (!rate.error)
      rate.error = Error{Errc::Failed, "the system allows no more threads", "raise the limit on processes"};
    return rate;
  }
  rate.error.reset();
  rate.own_busy /= good;
  rate.peer_busy /= good;
  for (const LinkConnection& connection : connections) rate.bytes += connection.moved(way);
  add_moved(moved, rate);
  return rate;
}

}  // namespace spark::fleet
