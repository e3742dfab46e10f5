#include "fleet/link/bursts.hpp"

#include <algorithm>
#include <memory>

#include "base/no_sigpipe.hpp"
#include "base/threads.hpp"

namespace spark::fleet {
namespace {

using std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int kRampPart = 5;                       // of a burst: until TCP has found its rate
constexpr std::chrono::milliseconds kShortest{5};  // of the time that tells a rate
// A request is as large as moves in this time, so that a burst ends soon after its time at any rate.
constexpr std::chrono::milliseconds kShort{10}, kLong{50};
constexpr Bytes kSmallestBlock = 4 * kKiB;

}  // namespace

Result<> Bursts::run(std::vector<Share>& shares) {
  const auto part = [&](std::size_t number) {
    if (number == 0) return conduct();
    use(connections_[number - 1], shares[number - 1]);
  };
  const auto ran = run_in_threads(connections_.size() + 1, part, [this] { end(); });
  return ran ? Result<>() : fail(ran.error());
}

void Bursts::use(LinkConnection& connection, Share& share) {
  share.has_run = true;
  const NoSigpipe guard;
  const Load before = current_load();
  Bytes block = kSmallestBlock;
  for (unsigned seen = 0; !share.error && join(seen);) {
    const std::unique_ptr<Bursts, void (*)(Bursts*)> joined(this, [](Bursts* all) { all->leave(); });
    while (!share.error && book(block))
      if (auto moved = transfer(connection, block); !moved) share.error = moved.error();
  }
  share.busy = growth(before, current_load()).thread;
}

// One request. Sets the size of the next one.
Result<> Bursts::transfer(LinkConnection& connection, Bytes& block) {
  const SteadyTime begun = steady_clock::now();
  if (way_ == Way::To) {
    throttle_.wait(block, [this] { return !is_open_; });
    if (!is_open_) return {};
  }
  if (auto moved = way_ == Way::From ? connection.receive(block) : connection.send(block); !moved)
    return moved;
  const auto took = steady_clock::now() - begun;
  if (took < kShort) block = std::min(block * 2, kMostLinkBytes);
  if (took > kLong) block = std::max(block / 2, kSmallestBlock);
  return {};
}

void Bursts::conduct() {
  const SteadyTime begun = steady_clock::now();
  for (bool is_last = false; !is_last;) {
    const SteadyTime from = steady_clock::now();
    one();
    const SteadyTime now = steady_clock::now();
    auto pause = std::chrono::duration_cast<SteadyTime::duration>((now - from) * (1 / limits_.share - 1));
    std::unique_lock lock(mutex_);
    is_last = all_ >= limits_.bytes || now + pause >= begun + limits_.time;
    if (is_last) pause = std::min<SteadyTime::duration>(pause, limits_.time);  // a stalled burst is long
    is_last = changed_.wait_for(lock, pause, [&] { return is_over_; }) || is_last;
  }
  moved_.with_pauses = steady_clock::now() - begun;
  end();
}

void Bursts::one() {
  const Ends before = look();
  const Bytes at_first = moved_by_all();
  const SteadyTime begun = steady_clock::now();
  {
    const std::scoped_lock lock(mutex_);
    booked_ = 0;
    ++number_;
    is_open_ = true;
  }
  changed_.notify_all();
  const bool is_long = await(begun + limits_.burst / kRampPart);
  const Bytes from = moved_by_all();
  const SteadyTime from_time = steady_clock::now();
  if (is_long) await(begun + limits_.burst);
  const Bytes to = moved_by_all();
  const SteadyTime to_time = steady_clock::now();
  {
    std::unique_lock lock(mutex_);
    is_open_ = false;
    changed_.wait(lock, [&] { return busy_ == 0; });
    all_ += booked_;
  }
  const SteadyTime ended = steady_clock::now();
  const bool has_rate = to > from && to_time - from_time >= kShortest;
  moved_.bytes += static_cast<double>(has_rate ? to - from : moved_by_all() - at_first);
  moved_.seconds += Seconds(has_rate ? to_time - from_time : ended - begun).count();
  moved_.all += ended - begun;
  add(before, look());
}

bool Bursts::await(SteadyTime until) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_until(lock, until, [&] { return is_over_ || is_spent(); });
}

bool Bursts::join(unsigned& seen) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_over_ || (is_open_ && number_ != seen); });
  if (is_over_) return false;
  seen = number_;
  ++busy_;
  return true;
}

void Bursts::leave() {
  {
    const std::scoped_lock lock(mutex_);
    --busy_;
  }
  changed_.notify_all();
}

bool Bursts::book(Bytes bytes) {
  if (!is_open_) return false;
  if (is_spent()) {
    const std::scoped_lock lock(mutex_);  // conduct() may be about to wait for it
    changed_.notify_all();
    return false;
  }
  booked_ += bytes;
  return true;
}

void Bursts::end() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
    is_open_ = false;
  }
  changed_.notify_all();
}

Bytes Bursts::moved_by_all() const {
  Bytes sum = 0;
  for (const LinkConnection& connection : connections_) sum += connection.moved(way_);
  return sum;
}

// While no burst is open, so that the answer does not wait behind its bytes.
Bursts::Ends Bursts::look() {
  Ends ends{end_at(connections_.front().local_address(), 0), {}};
  auto peer = control_ == nullptr ? Result<LinkEnd>(fail(Errc::Unavailable, "none")) : control_->end();
  if (peer) ends.peer = std::move(*peer);
  if (!peer) control_ = nullptr;
  return ends;
}

void Bursts::add(const Ends& before, const Ends& after) {
  const auto grown = [&](const LinkEnd& was, const LinkEnd& is, bool is_receiver) {
    const Bytes first = is_receiver ? was.received : was.sent, last = is_receiver ? is.received : is.sent;
    return last - std::min(first, last);  // a card may be made again
  };
  moved_.own_card += grown(before.own, after.own, way_ == Way::From);
  moved_.own += after.own.clock - before.own.clock;
  fleet::add(moved_.own_load, growth(before.own.load, after.own.load));
  // An older version does not tell its clock.
  if (before.peer.clock.count() == 0 || after.peer.clock <= before.peer.clock) return;
  moved_.peer_card += grown(before.peer, after.peer, way_ == Way::To);
  moved_.peer += after.peer.clock - before.peer.clock;
  fleet::add(moved_.peer_load, growth(before.peer.load, after.peer.load));
}

}  // namespace spark::fleet
