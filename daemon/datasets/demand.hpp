// A request to stage datasets, its requirements, and the combined requirements of a shared copy.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "daemon/jobs.hpp"
#include "staging/leases/lease.hpp"

namespace spark::datasets {

// How long a prefetched copy is kept for its job: after the requested time, or without one, after it was
// ready.
inline constexpr std::chrono::hours kKeptAfterBy{24}, kKeptWithoutBy{7 * 24};

// The requirements of one request.
struct Demand {
  Bytes max_rate = 0;        // bytes per second; 0 means no limit
  bool is_prefetch = false;  // for a future job: lowest priority
  // When a prefetch has to be ready; none means whenever nothing else is copied.
  std::optional<WallTime> by{};
  uid_t user = 0;  // of a shared copy: root if root requests it too

  auto operator<=>(const Demand&) const = default;
};

struct StageRequest {
  std::vector<std::string> datasets;
  std::optional<std::chrono::seconds> lease;  // lease by time
  staging::ProcessId process;                 // lease by process, identified at the time of the request
  staging::Cgroup cgroup;                     // lease by control group
  staging::SchedulerJob job;                  // lease by a scheduler's job, from now on
  Asker asker;
  // The process that asks, the one to hold it for, and their ancestors; its control group: they may hold it
  // already.
  std::vector<staging::ProcessId> callers;
  staging::Cgroup caller_cgroup;
  // Mounted for the job, a volume of a pod: the lease is on this one, whatever the configuration and the
  // source are now. 0: as it is staged.
  std::uint64_t generation = 0;
  std::uint64_t number = 0;        // of all requests to stage
  Demand demand;                   // rate and priority
  std::vector<std::string> nodes;  // hosts that stage the same: peers, beside the configured ones
  bool accepts_source = false;     // also if it became empty, or is on another file system than before
  bool allow_dirty = false;        // also from a volume that another host writes
  bool offline = false;            // the newest copy serves while the source is away
  bool now = false;                // may be read before it is complete: `live`
  std::set<std::string> now_only;  // these alone of its datasets; empty: all of them
  // How long a source may be away before anything was read; none means no limit.
  std::optional<Duration> wait = Duration(0);

  // The same for all requests of a scheduler's hooks for the same data; empty for any other request. Hooks
  // are root's.
  std::string own_key() const {
    const bool is_hook = demand.is_prefetch ? asker.uid == 0 : job.is_set() && demand == Demand{};
    if (!is_hook || wait || lease || accepts_source || allow_dirty || offline || generation != 0) return "";
    std::string key = demand.is_prefetch ? "prefetch" : job.key();
    if (demand.by) key += " by " + rfc3339(*demand.by);
    for (const std::string& dataset : datasets) key += (is_now(dataset) ? "\nnow " : "\n") + dataset;
    return key;
  }
  bool is_now(const std::string& dataset) const {
    return now && (now_only.empty() || now_only.contains(dataset));
  }
  bool wants_lease() const {
    return demand.is_prefetch || lease || process.pid != 0 || !cgroup.path.empty() || job.is_set();
  }
};

// The requirements of all requests that share a copy.
class Demands {
 public:
  void add(const Demand& demand) { all_.insert(demand); }
  void remove(const Demand& demand) { all_.erase(all_.find(demand)); }

  // A staging takes precedence over all prefetches. Among stagings the highest limit counts, among prefetches
  // the earliest time.
  Demand combined() const {
    std::optional<Demand> combined;
    for (const Demand& one : all_) {
      const uid_t user = combined ? std::min(combined->user, one.user) : one.user;
      if (!combined || (combined->is_prefetch && !one.is_prefetch)) {
        combined = one;
      } else if (combined->is_prefetch == one.is_prefetch) {
        const bool is_unlimited = combined->max_rate == 0 || one.max_rate == 0;
        combined->max_rate = is_unlimited ? 0 : std::max(combined->max_rate, one.max_rate);
        if (!combined->by || (one.by && *one.by < *combined->by)) combined->by = one.by;
      }
      combined->user = user;
    }
    return combined.value_or(Demand{});
  }

 private:
  std::multiset<Demand> all_;
};

// Until when a copy that is prefetched by `now` is kept.
inline WallTime kept_until(const Demand& prefetch, WallTime now) {
  return prefetch.by ? std::max(*prefetch.by, now) + kKeptAfterBy : now + kKeptWithoutBy;
}

// How much later than requested a prefetch is ready if it ends at `end`; no value if it is in time, or no
// time was requested.
inline std::optional<std::chrono::seconds> lateness(const Demand& prefetch, WallTime end) {
  if (!prefetch.by) return std::nullopt;
  const auto late = std::chrono::duration_cast<std::chrono::seconds>(end - *prefetch.by);
  if (late.count() <= 0) return std::nullopt;
  return late;
}

}  // namespace spark::datasets
