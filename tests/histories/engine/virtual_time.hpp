// Time that passes only while nothing is ready to run: a simulated hour takes milliseconds.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "daemon/timer.hpp"

namespace spark::histories {

// The clock of all simulated hosts, and the time source of their io_contexts. One thread.
class VirtualTime final : public Clock, public TimeSource {
 public:
  // `start`: of the wall clock.
  explicit VirtualTime(WallTime start) : wall_start_(start) {}

  WallTime wall() const override;
  SteadyTime steady() const override { return now_; }
  SteadyTime now() const override { return now_; }
  Ticket call_at(SteadyTime at, std::function<void()> due) override;
  void drop(Ticket ticket) override;

  // The wall clock jumps, as after NTP or a reset; durations are not affected.
  void shift_wall(std::chrono::nanoseconds by) { wall_shift_ += by; }
  Duration elapsed() const;  // since the start

  // The context's timers follow this time, and run_for() runs its work until it is detached. A killed daemon
  // is a context that is detached and destroyed.
  void attach(boost::asio::io_context& context);
  void detach(boost::asio::io_context& context);
  // Runs all ready work and all timers of the next `duration`.
  void run_for(Duration duration);
  // Runs ready work only; time stands still.
  void run_ready();
  // The same until `condition` holds, for `longest` at most; whether it holds.
  bool run_until(const std::function<bool()>& condition, Duration longest);

 private:
  bool jump(SteadyTime until);

  WallTime wall_start_;
  std::chrono::nanoseconds wall_shift_{0};
  SteadyTime now_{std::chrono::hours(1)};  // not 0: a host has been up for a while
  SteadyTime start_ = now_;
  std::multimap<SteadyTime, std::pair<Ticket, std::function<void()>>> due_;
  std::map<Ticket, decltype(due_)::iterator> tickets_;
  Ticket next_ticket_ = 1;
  std::vector<boost::asio::io_context*> contexts_;
};

}  // namespace spark::histories
