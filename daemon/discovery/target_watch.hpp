// Keeps the list of a target's offers current: a persistent connection to its discovery service, and the
// kernel's events for changes that the target reports. If such a connection is not possible, the target is
// polled. A subsystem that is not (or no longer) offered is never a reason to disconnect.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "daemon/backoff.hpp"
#include "daemon/config/model.hpp"
#include "daemon/discovery/actions.hpp"
#include "daemon/timer.hpp"
#include "daemon/uevents.hpp"

namespace spark::discovery {

// All waits in one place; unit tests shorten them.
struct Timings {
  Duration first_retry{2'000}, longest_retry{60'000};
  Duration look{2'000};          // between two checks of the connection's state
  Duration read_again{300'000};  // reads the log even without an event
  Duration doubt{30'000};        // down for this long: tries another portal, or another address of its name
  Duration ask_again{600'000};   // a target that can't be listened to: each poll costs it a connection
};

struct Status {
  std::string controller;            // that listens; empty means none now
  std::string reason;                // why there is none; otherwise empty
  std::optional<WallTime> asked_at;  // when the log was read last
  std::set<std::string> offered;     // the NQNs of I/O subsystems over TCP at that time
};

class TargetWatch : public std::enable_shared_from_this<TargetWatch> {
 public:
  // Called when the offers have changed, with the previous ones; not for the first result.
  using OnChange = std::function<void(const TargetWatch&, const std::set<std::string>& before)>;

  TargetWatch(asio::any_io_executor executor, config::Target target, std::unique_ptr<Actions> actions,
              const Clock& clock, Timings timings, OnChange on_change);

  // Runs until stop(), which leaves the connection for the next daemon; end() disconnects it.
  void start();
  void stop();
  void end();

  void heard(const Uevent& event);

  const config::Target& target() const { return target_; }
  const Status& status() const { return status_; }

 private:
  asio::awaitable<void> run();
  using Attempt = asio::awaitable<Result<>> (TargetWatch::*)(nvmetcp::Portal);
  asio::awaitable<Result<>> at_first_portal(Attempt attempt);
  asio::awaitable<Result<>> ask_at(nvmetcp::Portal portal);
  asio::awaitable<Result<>> connect_to(nvmetcp::Portal portal);
  asio::awaitable<Result<>> listen();
  asio::awaitable<bool> read();
  asio::awaitable<void> leave();
  asio::awaitable<void> leave_all();
  bool may_be_elsewhere() const;
  // No value: it is gone.
  Result<std::optional<nvmetcp::Controller>> find_connection();
  void note(const nvmetcp::DiscoveryLog& log);
  asio::awaitable<void> sleep(Duration duration);

  asio::any_io_executor executor_;
  config::Target target_;
  std::unique_ptr<Actions> actions_;
  const Clock& clock_;
  Timings timings_;
  OnChange on_change_;
  Backoff backoff_;
  Timer timer_;
  bool stopped_ = false, leaves_ = false;  // leaves_: disconnects at the end
  bool is_changed_ = false;                // the target has reported a change that was not read yet
  // The connection's address: the kernel may give its name to another target's once it is gone.
  std::optional<nvmetcp::Portal> numeric_;
  Status status_;
};

}  // namespace spark::discovery
