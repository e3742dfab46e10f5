// One dataset being staged, shared by every job that wants it.
#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "daemon/config/model.hpp"
#include "daemon/datasets/context.hpp"
#include "daemon/datasets/demand.hpp"
#include "daemon/datasets/totals.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::datasets {

class Leases;
using Outcome = Result<json::object>;

// What a copy is in the way of. Of one drive that is read there is one copy at full speed at a time, and
// beside it one that has a limit. Prefetches are in nobody's way: those with a deadline leave room by their
// rate, any other stops when something else is copied.
enum class SlotKind { Full, Limited, Deadline, Background };

struct Slot {
  std::string drive;  // see SourcePlace
  SlotKind kind = SlotKind::Full;
  auto operator<=>(const Slot&) const = default;
};

// One worker's try at a task. A new value for each.
struct Attempt {
  workers::Cancellation cancellation;
  pid_t worker = 0;            // 0: none
  Demand demand{};             // that it was started for
  bool begins_again = false;   // it was ended for another limit or another configuration
  bool has_begun = false;      // its source was looked at
  bool has_moved = false;      // it copied something
  bool saw_outage = false;     // its volume was away since a byte moved
  bool is_late = false;        // a prefetch that can't be there in time
  bool is_given_up = false;    // it hangs on although its volume is back
  bool is_from_peers = false;  // its volume is away, and not read
  std::optional<Doubt> doubt;  // another host writes its volume
  std::int64_t last_bytes = -1;
  SteadyTime last_moved{}, back_since{};

  void note(const json::object& progress, SteadyTime now);
};

struct Task {
  Task(const asio::any_io_executor& executor, std::uint64_t count, config::Dataset what);

  std::uint64_t number;      // no two of a daemon have the same, and later ones have larger ones
  std::string hold;          // id of the lease that its worker takes, until no request needs it
  config::Dataset dataset;   // as the last attempt's configuration had it
  Demands demands;           // one of each job that wants it
  bool allow_dirty = false;  // its volume may be written by another host meanwhile
  json::object progress;
  std::optional<Outcome> ended;
  unsigned users = 0;
  bool is_cancelled = false;
  bool is_over = false;  // only the cache is still asked how it looks now
  bool was_tried = false;
  bool has_room = false;             // of a prefetch: its room was reserved
  json::array evicted;               // for that room
  std::optional<SourcePlace> state;  // of its volume, as last read; for peers that have the same
  std::optional<Error> stops;        // why it is cancelled, if not by its requests
  std::optional<Slot> slot;          // that it has
  asio::steady_timer changed;        // never expires: cancelling it wakes all who wait
  asio::steady_timer pause;          // between two attempts
  Attempt attempt;                   // the one that runs, or ran last

  Demand demand() const { return demands.combined(); }
  void apply_demand();  // a worker keeps the rate that it began with: it may begin again
  void cancel();
  tl::unexpected<Error> cancelled() const;  // why
  void begin_again();
  void show_stalled(const std::string& reason);
  void show_queued();
};
using TaskPtr = std::shared_ptr<Task>;

// What is under way with which dataset, by its name.
struct Activity {
  std::map<std::string, TaskPtr> tasks;       // being staged
  std::uint64_t newest_task = 0;              // its number
  std::map<std::string, std::string> failed;  // why its last staging failed
  std::multiset<std::string> wanted;          // by stage jobs: not evicted before their leases begin
  std::set<std::string> early_leases;         // ids, of stage jobs that have not ended: no training runs yet
  std::set<std::string> evicting;
  Totals totals;
};

// Ends what the tasks' workers hold in the catalog. Unavailable: a hold is gone, and with it a copy that was
// staged.
asio::awaitable<Result<>> end_holds(Leases& leases, std::vector<TaskPtr> tasks);

}  // namespace spark::datasets
