// The connections of a volume to its subsystem. Where its target has several portals, each is connected for
// itself, and again when it is lost; the kernel's multipath makes one device of them. A controller that was
// there before this daemon is taken over: it gets our timers and our name. The kernel tries an address for as
// long as `controller_loss` says, without end by default: where a target's name leads elsewhere meanwhile,
// its new address becomes one more path, over which everything that waits goes on.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/backoff.hpp"
#include "daemon/volumes/context.hpp"
#include "daemon/volumes/paths/rivals.hpp"

namespace spark::volumes {

enum class Link { Live, Down, Gone };  // of all paths to the subsystem together

class Paths {
 public:
  explicit Paths(VolumeContext& volume);

  // From sysfs, without blocking; also notes each path for `status`.
  Link look();
  // A controller of ours is live, or every portal is asked in turn until one is.
  asio::awaitable<Result<>> reach();
  // Whoever made a connection that was there before may have made it without the keys that are asked for.
  asio::awaitable<Result<>> check_keys();
  Result<> check_secured();
  // What other programs have connected since the mount: a warning, since to take the volume down would hurt
  // its users, and hide the cause.
  void look_for_insecure();
  // Those of the configuration, on every controller; gives the first failure.
  asio::awaitable<Result<>> set_timers();
  // What the kernel did not find on its own: see nvmetcp/sysfs/rescan.hpp.
  asio::awaitable<void> rescan();

  // Keeps every path connected while the volume is mounted, until stop(). The first one is brought up with
  // the volume, unless it was there.
  asio::awaitable<void> tend();
  void stop() { timer_.cancel(); }
  bool is_connecting() const { return is_connecting_; }
  bool are_several() const { return paths_.size() > 1; }
  Rivals& rivals() { return rivals_; }

 private:
  // To one portal, with its own retries.
  struct Path {
    nvmetcp::Portal portal;
    Backoff backoff;
    std::string controller{};  // that was connected or adopted for it last,
    std::string numeric{};     // and its address: a name is given to the next controller at once
    std::string reason{};      // why there is none
    SteadyTime next_attempt{};
    std::optional<SteadyTime> down_since{};
  };

  // reach.cpp
  asio::awaitable<Result<>> connect_offered(Path& path, std::string elsewhere);
  asio::awaitable<Result<std::string>> find_offer(nvmetcp::Portal portal);
  asio::awaitable<Result<>> take_over();
  asio::awaitable<Result<nvmetcp::Connection>> connect_portal(nvmetcp::Portal portal);
  void note(Path& path, const std::string& controller);

  const PathStatus* status_of(const Path& path) const;
  asio::awaitable<void> tend(Path& path);
  asio::awaitable<void> connect(Path& path);
  bool is_due(const Path& path) const;
  bool is_down(const Path& path) const;
  bool may_lead_elsewhere(Path& path);
  asio::awaitable<void> follow_name(Path& path);
  asio::awaitable<void> leave_old_addresses();

  VolumeContext& volume_;
  Rivals rivals_;
  std::vector<Path> paths_;  // none for NFS
  asio::steady_timer timer_;
  bool is_connecting_ = false;
  bool has_followed_name_ = false;  // the old address's controller is still there
};

}  // namespace spark::volumes
