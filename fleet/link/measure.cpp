#include "fleet/link/measure.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/no_sigpipe.hpp"
#include "base/threads.hpp"
#include "fleet/protocol/request.hpp"
#include "fleet/transport/http.hpp"
#include "staging/files/io/throttle.hpp"

namespace spark::fleet {
namespace {

using std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::chrono::milliseconds kConnect{2000};
constexpr std::chrono::milliseconds kWarmUp{300};  // until TCP has found its rate
// A request is as large as moves in this time, so that the end of the measurement is near at any rate.
constexpr std::chrono::milliseconds kShort{10}, kLong{50};
constexpr Bytes kFirstBlock = 16 * kKiB, kSmallestBlock = 4 * kKiB, kPart = 256 * kKiB;
constexpr Bytes kLongestEnd = 64 * kKiB;

const std::string& noise() {
  static const std::string bytes(kMostLinkBytes, 'x');
  return bytes;
}

PeerRequest request_for(PeerRequest::Kind kind, Bytes bytes) {
  PeerRequest request;
  request.kind = kind;
  request.bytes = bytes;
  return request;
}

// One connection, used by one thread.
class Connection {
 public:
  Connection(std::unique_ptr<Channel> channel, std::chrono::milliseconds silence)
      : channel_(std::move(channel)), silence_(silence), part_(kPart, '\0') {}

  Result<LinkEnd> end() {
    const auto head = ask(request_for(PeerRequest::Kind::Link, 0), {});
    if (!head) return head.take_error();
    if (head->status != 200 || head->length > kLongestEnd)
      return fail(Errc::Unsupported, "its version of spark-stage does not know this test",
                  "install the same version on all hosts");
    std::string text(buffered_.substr(0, head->length));
    buffered_.erase(0, text.size());
    const std::size_t early = text.size();
    text.resize(head->length);
    if (auto read = channel_->read_all(std::span(text).subspan(early)); !read) return read.take_error();
    const auto object = parse_json_object(text);
    if (!object) return object.take_error();
    return link_end_from(*object);
  }

  Result<> receive(Bytes bytes) {
    const auto head = ask(request_for(PeerRequest::Kind::LinkSend, bytes), {});
    if (!head) return head.take_error();
    if (head->length != bytes) return fail(Errc::Unavailable, "the peer refused to send");
    Bytes left = bytes - std::min<Bytes>(bytes, buffered_.size());
    buffered_.erase(0, bytes - left);
    while (left > 0) {
      const auto read = channel_->read_some(std::span(part_).first(std::min<Bytes>(left, kPart)));
      if (!read) return read.take_error();
      if (*read == 0) return fail(Errc::Unavailable, "the peer closed the connection");
      left -= *read;
    }
    return {};
  }

  Result<> send(Bytes bytes) {
    const auto head =
        ask(request_for(PeerRequest::Kind::LinkTake, bytes), std::string_view(noise()).substr(0, bytes));
    if (!head) return head.take_error();
    if (head->status != 200) return fail(Errc::Unavailable, "the peer refused to receive");
    return {};
  }

 private:
  std::unique_ptr<Channel> channel_;
  std::chrono::milliseconds silence_;
  std::string buffered_, part_;

  Result<AnswerHead> ask(const PeerRequest& request, std::string_view body) {
    channel_->set_limits(silence_, steady_clock::now() + 2 * silence_);
    Result<> sent = channel_->write_all(request_text(to_target(request)));
    if (sent) sent = channel_->write_all(body);
    if (sent) sent = channel_->flush();
    if (!sent) return sent.take_error();
    return read_answer(*channel_, buffered_);
  }
};

Result<Connection> open(const std::shared_ptr<Security>& security, const Endpoint& peer,
                        std::chrono::milliseconds patience) {
  auto channel = Channel::connect(security, peer, patience);
  if (!channel) return channel.take_error();
  return Connection(std::move(*channel), patience);
}

// What one connection did.
struct Share {
  Bytes bytes = 0;  // after the warm-up
  double bytes_per_second = 0, own_busy = 0, peer_busy = 0;
  Bytes limit = 0;
  double peer_card_rate = 0;
  std::optional<Error> error;
};

class Measurement {
 public:
  Measurement(Way way, const MeasureLimits& limits)
      : way_(way), limits_(limits), throttle_(limits.rate), began_(steady_clock::now()) {}

  Share use(Connection& connection) {
    Share share;
    if (auto moved = move(connection, share); !moved) share.error = moved.error();
    return share;
  }

 private:
  const Way way_;
  const MeasureLimits limits_;
  staging::Throttle throttle_;
  const SteadyTime began_;
  std::atomic<Bytes> all_{0};

  Result<> one(Connection& connection, Bytes bytes) {
    if (way_ == Way::From) return connection.receive(bytes);
    throttle_.wait(bytes, [] { return false; });
    return connection.send(bytes);
  }

  Result<> move(Connection& connection, Share& share) {
    const NoSigpipe guard;
    const auto peer_before = connection.end();
    if (!peer_before) return peer_before.take_error();
    const Load before = current_load();
    const SteadyTime begun = steady_clock::now();
    SteadyTime from = begun, to = begun, now = begun;
    bool is_warm = false;
    Bytes moved_in_all = 0;
    for (Bytes block = kFirstBlock; now < began_ + limits_.time && all_ < limits_.bytes;) {
      if (auto moved = one(connection, block); !moved) return moved;
      const SteadyTime done = steady_clock::now();
      all_ += block;
      moved_in_all += block;
      share.bytes += block;
      if (!is_warm && done - began_ >= kWarmUp) {  // the rate is that from here on
        is_warm = true;
        share.bytes = 0;
        from = done;
      }
      to = done;
      if (done - now < kShort) block = std::min(block * 2, kMostLinkBytes);
      if (done - now > kLong) block = std::max(block / 2, kSmallestBlock);
      now = done;
    }
    if (to == from) {  // a link so slow that nothing followed the warm-up
      from = begun;
      share.bytes = moved_in_all;
    }
    if (to > from) share.bytes_per_second = static_cast<double>(share.bytes) / Seconds(to - from).count();
    share.own_busy = busy_share(before, current_load(), now - begun);
    const auto peer_after = connection.end();
    if (!peer_after) return peer_after.take_error();
    share.peer_busy = busy_share(peer_before->load, peer_after->load, now - begun);
    share.limit = way_ == Way::From ? peer_after->limit : limits_.rate;
    const Bytes grown = way_ == Way::From ? peer_after->sent - peer_before->sent
                                          : peer_after->received - peer_before->received;
    share.peer_card_rate = static_cast<double>(grown) / Seconds(steady_clock::now() - begun).count();
    return {};
  }
};

}  // namespace

Result<LinkEnd> look_at_peer(const std::shared_ptr<Security>& security, const Endpoint& peer,
                             std::chrono::milliseconds patience) {
  const NoSigpipe guard;
  auto connection = open(security, peer, patience);
  if (!connection) return connection.take_error();
  return connection->end();
}

WayRate measure(const std::shared_ptr<Security>& security, const Endpoint& peer, Way way,
                const MeasureLimits& limits) {
  WayRate rate;
  std::vector<Connection> connections;
  while (connections.size() < limits.connections) {
    auto connection = open(security, peer, kConnect);
    if (!connection) {
      rate.error = connection.error();
      break;
    }
    connections.push_back(std::move(*connection));
  }
  if (connections.empty()) return rate;
  rate.error.reset();  // a host has a share of the peer's connections, and its stagings use them too
  std::vector<Share> shares(connections.size());
  Measurement measurement(way, limits);
  const auto ran =
      run_in_threads(connections.size(), [&](std::size_t i) { shares[i] = measurement.use(connections[i]); });
  if (!ran) {
    rate.error = ran.error();
    return rate;
  }
  std::size_t good = 0;
  for (const Share& share : shares) {
    if (share.error) {
      rate.error = share.error;
      continue;
    }
    ++good;
    rate.bytes_per_second += share.bytes_per_second;
    rate.own_busy += share.own_busy;
    rate.peer_busy += share.peer_busy;
    rate.limit = std::max(rate.limit, share.limit);
    rate.card_bytes_per_second = std::max(rate.card_bytes_per_second, share.peer_card_rate);
  }
  if (good == 0) return rate;
  rate.error.reset();
  rate.own_busy /= static_cast<double>(good);
  rate.peer_busy /= static_cast<double>(good);
  return rate;
}

}  // namespace spark::fleet
