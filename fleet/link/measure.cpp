#include "fleet/link/measure.hpp"

#include <algorithm>
#include <vector>

#include "base/no_sigpipe.hpp"
#include "base/threads.hpp"
#include "fleet/link/bursts.hpp"
#include "staging/files/io/throttle.hpp"

namespace spark::fleet {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kConnect{2000};
// A request is as large as moves in this time, so that a burst ends soon after its time at any rate.
constexpr std::chrono::milliseconds kShort{10}, kLong{50};
constexpr Bytes kSmallestBlock = 4 * kKiB;

// What one connection did.
struct Share {
  bool has_run = false;
  std::chrono::nanoseconds busy{}, peer_before{};
  std::optional<Error> error;
};

class Measurement {
 public:
  Measurement(Way way, const MeasureLimits& limits, std::vector<LinkConnection>& connections,
              LinkConnection* control)
      : way_(way),
        throttle_(way == Way::To ? limits.rate : 0),
        connections_(connections),
        bursts_(way, limits, connections, control) {}

  Result<> run(std::vector<Share>& shares) {
    const auto ran = run_in_threads(
        connections_.size() + 1,
        [&](std::size_t i) {
          if (i == 0) return bursts_.conduct();
          use(connections_[i - 1], shares[i - 1]);
        },
        [&] { bursts_.end(); });
    return ran ? Result<>() : fail(ran.error());
  }
  const Moved& moved() const { return bursts_.moved(); }

 private:
  const Way way_;
  staging::Throttle throttle_;
  std::vector<LinkConnection>& connections_;
  Bursts bursts_;

  void use(LinkConnection& connection, Share& share) {
    share.has_run = true;
    const NoSigpipe guard;
    const Load before = current_load();
    Bytes block = kSmallestBlock;
    for (unsigned seen = 0; !share.error && bursts_.join(seen);) {
      const std::unique_ptr<Bursts, void (*)(Bursts*)> joined(&bursts_, [](Bursts* all) { all->leave(); });
      while (bursts_.book(block))
        if (auto moved = one(connection, block); !moved) {
          share.error = moved.error();
          break;
        }
    }
    share.busy = growth(before, current_load()).thread;
  }

  // Sets the size of the next one.
  Result<> one(LinkConnection& connection, Bytes& block) {
    const SteadyTime begun = steady_clock::now();
    if (way_ == Way::To) {
      throttle_.wait(block, [&] { return !bursts_.is_open(); });
      if (!bursts_.is_open()) return {};
    }
    if (auto moved = way_ == Way::From ? connection.receive(block) : connection.send(block); !moved)
      return moved;
    const auto took = steady_clock::now() - begun;
    if (took < kShort) block = std::min(block * 2, kMostLinkBytes);
    if (took > kLong) block = std::max(block / 2, kSmallestBlock);
    return {};
  }
};

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
  Measurement measurement(way, limits, connections, control ? &*control : nullptr);
  if (auto ran = measurement.run(shares); !ran) {
    rate.error = ran.error();
    return rate;
  }
  const Moved& moved = measurement.moved();
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
