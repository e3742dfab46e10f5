// One dataset being staged, shared by all jobs that request it.
#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
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
#include "daemon/event.hpp"
#include "daemon/timer.hpp"
#include "daemon/workers/runner.hpp"

namespace spark::datasets {

class Leases;
using Outcome = Result<json::object>;

// The kind of a copy's slot. For each source drive there is at most one copy at full speed, and in addition
// one of each user with a limit. Prefetches block no copy: those with a deadline limit their rate, any other
// stops when something else is copied.
enum class SlotKind { Full, Limited, Deadline, Background };

struct Slot {
  std::string drive;  // see SourcePlace
  SlotKind kind = SlotKind::Full;
  uid_t user = 0;
  // With a live view: no copy of its drive waits for it. It waits for those that have none, unless jobs read
  // it.
  bool is_live = false, is_read = false;
  auto operator<=>(const Slot&) const = default;
};

// One worker's attempt at a task. A new object for each attempt.
struct Attempt {
  workers::Cancellation cancellation;
  pid_t worker = 0;            // 0 means none
  Demand demand{};             // at its start
  bool begins_again = false;   // ended in order to restart with another limit or configuration
  bool has_begun = false;      // it has examined its source
  bool has_moved = false;      // it copied something
  bool saw_outage = false;     // its volume was away since the last byte moved
  bool is_late = false;        // a prefetch that will not be in time
  bool is_given_up = false;    // it hangs although its volume is back
  bool is_from_peers = false;  // its volume is away, and not read
  std::optional<Doubt> doubt;  // another host writes its volume
  std::uint64_t requests = 0;  // the newest request when it began
  // Its live view can be read: when the walk of what that shows began.
  std::optional<WallTime> walked_at;
  json::object walk{};  // what it has found that is not in the set: "skipped", "warnings", "outside_links"
  std::int64_t first_bytes = -1, last_bytes = -1;  // copied
  SteadyTime begun{}, last_moved{}, back_since{};

  void note(const json::object& progress, SteadyTime now);
};

// Of a task that jobs may read while it is staged.
struct TaskView {
  std::uint64_t number = 0;        // 0: there is none now
  std::string none{};              // why there can't be one, as the last attempt has found
  bool is_read = false;            // a job has it
  bool has_tried_another = false;  // after one that could not begin

  bool is_possible() const { return number != 0 && none.empty(); }
};

struct Task {
  Task(const asio::any_io_executor& executor, std::uint64_t count, config::Dataset what);

  std::uint64_t number;         // unique in this daemon, and increasing
  std::string hold;             // ID of the lease that its worker takes, until no request needs it
  config::Dataset dataset;      // from the configuration at the last attempt
  Demands demands;              // one for each job that requests it
  std::set<std::string> nodes;  // of the requests' jobs: peers
  bool accepts_source = false;  // also if it became empty, or is on another file system
  bool allow_dirty = false;     // its volume may be written by another host meanwhile
  TaskView view;
  json::object progress;
  std::optional<Outcome> ended;
  unsigned users = 0;
  bool is_cancelled = false;
  bool is_over = false;  // finished, except for a refresh of the catalog
  bool was_tried = false;
  bool is_copy = false;               // not staged: a copy that is served to one request as it is
  std::optional<SteadyTime> read_at;  // an attempt read its source then, for the last time
  // Why it can't go on now, as its source is configured but can't be reached; and since when it has been so,
  // with attempts between.
  std::optional<Error> away;
  std::optional<SteadyTime> away_since;
  bool has_room = false;             // for a prefetch: its space was reserved
  json::array evicted;               // for that space
  std::optional<SourcePlace> state;  // of its volume, as last read; for peers with the same state
  std::string peers_failed;          // why they could not stand in for its volume, as logged last
  std::optional<Error> stops;        // why it is cancelled, if not by its requests
  std::optional<Slot> slot;          // its slot, if any
  unsigned yields = 0;               // times that it was too slow while another user waited
  Event changed;
  Timer pause;      // between two attempts
  Attempt attempt;  // the current or the last one

  Demand demand() const { return demands.combined(); }
  void apply_demand();  // a worker keeps its initial rate, so the attempt may have to restart
  void cancel();
  tl::unexpected<Error> cancelled() const;  // the reason
  void begin_again();
  void show_stalled(const std::string& reason);
  void note_read(SteadyTime now);  // its source is there
  void show_away(Error why, SteadyTime now);
  void show_queued();
};
using TaskPtr = std::shared_ptr<Task>;

// Since the daemon started: counters that never decrease.
struct Totals {
  // Results of stagings. Concurrent requests for one dataset count once.
  std::uint64_t copied = 0, from_cache = 0, failed = 0, cancelled = 0;
  Bytes copied_bytes = 0;     // of the stagings that ended as copied, without data shared with earlier copies
  Bytes peer_bytes = 0;       // part of those from other hosts
  double copied_seconds = 0;  // duration of those
  std::uint64_t stalls = 0;   // times that a staging waited for its source to return

  std::uint64_t evicted_for_room = 0, evicted_by_request = 0;
  Bytes evicted_for_room_bytes = 0, evicted_by_request_bytes = 0;

  // Results of verifying and scrubbing.
  std::uint64_t found_good = 0, found_damaged = 0, not_readable = 0;
};

// Work in progress, by dataset name.
struct Activity {
  std::map<std::string, TaskPtr> tasks;       // being staged
  std::uint64_t newest_task = 0;              // its number
  std::uint64_t requests = 0;                 // counted
  std::map<std::string, std::string> failed;  // why its last staging failed
  std::multiset<std::string> wanted;          // by stage jobs: not evicted before their leases begin
  std::multiset<std::string> wanted_now;      // of those, by jobs that take a live view
  std::set<std::string> early_leases;         // IDs; of stage jobs that have not ended: no training runs yet
  std::set<std::string> evicting;
  Totals totals;
};

// For the request, without users.
TaskPtr make_task(const asio::any_io_executor& executor, Activity& activity, const config::Dataset& dataset,
                  const StageRequest& request);

// What the configuration says of a dataset's content, as text.
std::string definition_of(const config::Dataset& dataset);

// Counts a staging that has ended; logs the datasets evicted for its space.
void count(Totals& totals, const Task& task, const Outcome& ended);

tl::unexpected<Error> being_evicted(const std::string& dataset);

// Ends the holds of the tasks' workers in the catalog.
asio::awaitable<void> end_holds(Leases& leases, std::vector<TaskPtr> tasks);

// The waits of a staging between two attempts: for its source, for the end of a doubt, for a changed
// configuration. Each shows its reason, and ends when the task is cancelled.
asio::awaitable<void> pause_for(TaskPtr task, Duration time);  // or until it is cancelled

// For a volume on its first attempt: it may be ready in a moment.
asio::awaitable<void> wait_while_settling(const Context& context, TaskPtr task);

// For a task that can't go on, because of `why`: waits that long, then until its source can be read, or until
// `end`. Takes the dataset's current configuration, and does not wait for one that was removed from it. Only
// those of its requests wait that have the patience for it.
asio::awaitable<void> wait_for_source(const Context& context, TaskPtr task, Error why, Duration pause,
                                      SteadyTime end = SteadyTime::max());

// Whether the doubt ended, or the task was cancelled.
asio::awaitable<bool> doubt_passed(const Context& context, TaskPtr task);

// The dataset's source, or the part of it to stage, has changed in the configuration.
bool is_redefined(const Context& context, const Task& task);

}  // namespace spark::datasets
