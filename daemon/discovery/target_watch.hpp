// What one target offers, known as soon as it changes: a connection to its discovery service that stays, and
// the events that the kernel makes of what the target tells. Where that can't be, the target is asked now and
// then. What is not offered (any more) is never a reason to disconnect anything.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "daemon/backoff.hpp"
#include "daemon/config/model.hpp"
#include "daemon/discovery/actions.hpp"
#include "daemon/uevents.hpp"

namespace spark::discovery {

// Every wait, in one place; unit tests shrink them.
struct Timings {
  Duration first_retry{2'000}, longest_retry{60'000};
  Duration look{2'000};          // between two looks at the connection's state
  Duration read_again{300'000};  // the log, although nothing was heard
  Duration doubt{30'000};        // down for so long: another portal, or another address of its name, is tried
  Duration ask_again{600'000};   // a target that can't be listened to: each costs it a connection
};

struct Status {
  std::string controller;            // that listens; empty: none now
  std::string reason;                // why there is none; empty otherwise
  std::optional<WallTime> asked_at;  // when the log was read last
  std::set<std::string> offered;     // the NQNs of I/O subsystems over TCP, then
};

class TargetWatch : public std::enable_shared_from_this<TargetWatch> {
 public:
  // Called when what is offered has changed, with what it was before; not at the first look.
  using OnChange = std::function<void(const TargetWatch&, const std::set<std::string>& before)>;

  TargetWatch(asio::any_io_executor executor, config::Target target, std::unique_ptr<Actions> actions,
              const Clock& clock, Timings timings, OnChange on_change);

  // Runs until stop(), which leaves the connection for the next daemon; end() takes it away.
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
  asio::steady_timer timer_;
  bool stopped_ = false, leaves_ = false;  // leaves: takes its connection away at the end
  bool is_changed_ = false;                // the target has told of a change that was not read yet
  Status status_;
};

}  // namespace spark::discovery
