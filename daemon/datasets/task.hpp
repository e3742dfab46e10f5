// One dataset being staged, shared by every job that wants it.
#pragma once

#include <sys/types.h>

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "daemon/config/model.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::datasets {

namespace asio = boost::asio;

// Of one drive that is read there is one copy at full speed at a time, and beside it one that has a limit.
struct Slot {
  std::string drive;  // see Stager::SourcePlace
  bool is_limited = false;
  auto operator<=>(const Slot&) const = default;
};

struct Task {
  Task(asio::any_io_executor executor, std::uint64_t count, config::Dataset what);

  std::uint64_t number;         // no two of a daemon have the same, and later ones have larger ones
  std::string hold;             // id of the lease that its worker takes, until no request needs it
  config::Dataset dataset;      // as the last attempt's configuration had it
  std::multiset<Bytes> limits;  // bytes per second, one for each job that wants it; 0: without a limit
  bool allow_dirty = false;     // its volume may be written by another host meanwhile
  json::object progress;
  std::optional<Result<json::object>> ended;
  unsigned users = 0;
  bool is_cancelled = false;
  bool is_over = false;  // only the cache is still asked how it looks now
  bool was_tried = false;
  std::optional<Slot> slot;    // that it has
  asio::steady_timer changed;  // never expires: cancelling it wakes all who wait
  asio::steady_timer pause;    // between two attempts

  // Of the attempt that runs.
  workers::Cancellation attempt;
  Bytes limit = 0;            // that its worker was given
  bool begins_again = false;  // it was ended for another limit or another configuration
  pid_t worker = 0;           // 0: none
  bool has_begun = false;     // its source was looked at
  bool has_moved = false;     // it copied something
  bool saw_outage = false;    // its volume was away since a byte moved
  bool is_given_up = false;   // it hangs on although its volume is back
  std::string doubt;          // another host writes its volume; empty: none that is known of
  bool doubt_passes = false;  // by itself, in seconds
  std::int64_t last_bytes = -1;
  SteadyTime last_moved, back_since;

  Bytes loosest_limit() const;
  void cancel();
  void begin_again();
  void show_stalled(const std::string& reason);
  void begin_attempt(SteadyTime now);
};
using TaskPtr = std::shared_ptr<Task>;

}  // namespace spark::datasets
