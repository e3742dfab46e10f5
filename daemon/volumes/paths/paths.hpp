// The connections of a volume to its subsystem. If its target has several portals, each is connected
// independently, and reconnected when it is lost; the kernel's multipath makes one device of them. A
// controller that existed before this daemon is taken over: it gets the daemon's timers and owner name. The
// kernel retries an address for as long as `controller_loss` allows, by default indefinitely. If a target's
// name meanwhile resolves to a different address, that address becomes an additional path, and all waiting
// I/O continues over it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/backoff.hpp"
#include "daemon/timer.hpp"
#include "daemon/volumes/context.hpp"
#include "daemon/volumes/paths/rivals.hpp"

namespace spark::volumes {

// The next step while I/O waits for an address that its target has left. Only a person can give up its
// unwritten data.
std::string end_old(const nvmetcp::Controller& old);

enum class Link { Live, Down, Gone };  // of all paths to the subsystem together

class Paths {
 public:
  explicit Paths(VolumeContext& volume);

  // Reads sysfs, without blocking; also updates each path for `status`.
  Link look();
  // Succeeds if a controller of the target is live; otherwise tries every portal in turn until one is.
  asio::awaitable<Result<>> reach();
  // An existing connection may have been created without the configured keys.
  asio::awaitable<Result<>> check_keys();
  Result<> check_secured();
  // Checks connections that other programs created since the mount. Only a warning: taking the volume down
  // would disturb its users, and hide the cause.
  void look_for_insecure();
  // Sets the configured timers on every controller; returns the first failure.
  asio::awaitable<Result<>> set_timers();
  // For a namespace that the kernel did not find on its own: see nvmetcp/sysfs/rescan.hpp.
  asio::awaitable<void> rescan();

  // Keeps every path connected while the volume is mounted, until stop(). The first one is connected while
  // the volume is brought up, unless it exists already.
  asio::awaitable<void> tend();
  // The same once, for a volume that is being taken down: its unwritten data may wait for a target that has
  // moved.
  asio::awaitable<void> tend_once();
  // Controllers that retry an address which the target has given up would never end, nor would requests that
  // wait for them. The volume has another live path. Refused, with the next step: a device is in use that
  // only such a controller leads to, or another program made that connection.
  asio::awaitable<Result<>> leave_old_addresses();
  void stop() { timer_.cancel(); }
  bool is_connecting() const { return is_connecting_; }
  bool are_several() const { return paths_.size() > 1; }
  Rivals& rivals() { return rivals_; }

 private:
  // The connection to one portal, with its own retries.
  struct Path {
    nvmetcp::Portal portal;
    Backoff backoff;
    std::string controller{};  // last one connected or adopted for it,
    std::string numeric{};  // and its address: the kernel reuses a name for the next controller immediately
    std::string reason{};   // why there is none
    std::vector<std::string> differences{};  // options that the kernel did not apply to it
    SteadyTime next_attempt{};
    std::optional<SteadyTime> down_since{};
  };

  // reach.cpp
  asio::awaitable<Result<>> connect_offered(Path& path, std::string elsewhere);
  asio::awaitable<Result<std::string>> find_offer(nvmetcp::Portal portal);
  asio::awaitable<Result<>> take_over();
  asio::awaitable<Result<nvmetcp::Connection>> connect_portal(nvmetcp::Portal portal);
  void note(Path& path, const nvmetcp::Connection& connection);

  const PathStatus* status_of(const Path& path) const;
  asio::awaitable<void> tend(Path& path);
  asio::awaitable<void> connect(Path& path);
  bool is_due(const Path& path) const;
  bool may_lead_elsewhere(Path& path);
  asio::awaitable<void> follow_name(Path& path);

  VolumeContext& volume_;
  Rivals rivals_;
  std::vector<Path> paths_;  // empty for NFS
  Timer timer_;
  bool is_connecting_ = false;
  bool has_followed_name_ = false;  // the old address's controller still exists
};

}  // namespace spark::volumes
