#include "daemon/service/staging_request.hpp"

#include <limits>
#include <set>

#include "base/file.hpp"
#include "base/text.hpp"
#include "daemon/fleet/node_list.hpp"
#include "daemon/service/handlers.hpp"

namespace spark {
namespace {

using api::Request;

constexpr std::int64_t kLongestWait = 10LL * 366 * 86400;  // seconds
constexpr std::size_t kMostNames = 1000, kMostProcesses = 1000;
// A Kubernetes namespace, a slash and the name of a pod.
constexpr std::size_t kLongestUser = 63 + 1 + 253;

bool can_be_pid(std::int64_t pid) {
  return pid > 1 && pid <= std::numeric_limits<pid_t>::max();
}

// The holder of a lease: "hold" is true (the caller), a process's number, or "cgroup" (the caller's).
Result<> read_hold(datasets::StageRequest& wanted, const Request& request) {
  const json::value* hold = request.body.if_contains("hold");
  if (hold == nullptr || *hold == false) return {};
  if (*hold == true) {
    // In another PID namespace the kernel gives no number that this host could watch.
    if (staging::process_with(request.caller.pid).start_time == 0)
      return fail(Errc::Refused, "the daemon does not see the process that asks: no lease could end with it",
                  "let both share a PID namespace (--pid=host, hostPID: true), or lease for a time: "
                  "`spark-stage stage --lease 12h`");
    wanted.process = staging::process_with(request.caller.pid);
  } else if (*hold == "cgroup") {
    auto group = staging::cgroup_of(SystemRoot{}, request.caller.pid);
    if (!group) return group.take_error();
    wanted.cgroup = std::move(*group);
  } else {
    const auto pid = get_int(request.body, "hold").value_or(0);
    if (!can_be_pid(pid)) {
      return fail(Errc::Invalid, "hold is not true, \"cgroup\" or a process that can end",
                  "a lease has to end");
    }
    wanted.process = staging::process_with(static_cast<pid_t>(pid));
    if (wanted.process.start_time == 0)
      return fail(Errc::NotFound, "no process " + std::to_string(pid) + " to hold a lease for");
  }
  return {};
}

// Who may hold a copy already: a process that asks, or is named, and its ancestors and control group.
void read_callers(datasets::StageRequest& wanted, pid_t caller) {
  wanted.callers = staging::lineage_of(caller);
  for (const staging::ProcessId& one : staging::lineage_of(wanted.process.pid)) wanted.callers.push_back(one);
  if (auto group = staging::cgroup_of(SystemRoot{}, caller)) wanted.caller_cgroup = std::move(*group);
}

// Processes that have already ended hold nothing.
Result<> read_processes(staging::SchedulerJob& job, const json::object& wanted) {
  const json::array* processes = get_array(wanted, "processes");
  if (processes == nullptr) return {};
  if (processes->size() > kMostProcesses)
    return fail(Errc::Invalid, "the job names more than " + std::to_string(kMostProcesses) + " processes",
                "name those that live as long as the job");
  for (const json::value& value : *processes) {
    const std::int64_t pid = value.is_int64() ? value.get_int64() : 0;
    if (!can_be_pid(pid))
      return fail(Errc::Invalid, "the job's processes are numbers of processes that can end");
    const auto process = staging::process_with(static_cast<pid_t>(pid));
    if (process.start_time != 0) job.processes.push_back(process);
  }
  return {};
}

// "job": {"system", "id", "user"?, "processes"?, "nodes"?}: from a scheduler or spark-stage-csi, which run as
// root.
Result<> read_job(datasets::StageRequest& wanted, const Request& request) {
  const json::value* given = request.body.if_contains("job");
  if (given == nullptr || given->is_null()) return {};
  const json::object* job = given->if_object();
  if (job == nullptr) return fail(Errc::Invalid, "job is not an object", "docs/api.md has its form");
  if (!request.caller.may_change) {
    return fail(Errc::Denied,
                "uid " + std::to_string(request.caller.uid) + " may not ask for a scheduler's job",
                "use --hold cgroup inside of the job");
  }
  if (request.body.contains("hold"))
    return fail(Errc::Invalid, "a request has a job or hold, not both", "a job's lease ends with the job");
  wanted.job.system = get_text(*job, "system");
  wanted.job.id = get_text(*job, "id");
  wanted.job.user = get_text(*job, "user").substr(0, kLongestUser);
  if (wanted.job.system != staging::kSlurm && wanted.job.system != staging::kCsi) {
    return fail(Errc::Invalid, "job.system is not a scheduler that is known here",
                "it is \"slurm\", or \"csi\" for a volume of a pod");
  }
  if (auto valid = staging::check_job_id(wanted.job.system, wanted.job.id); !valid) return valid;
  wanted.nodes = fleet::expand_node_list(get_text(*job, "nodes"));
  // A pod and its volume survive a reboot.
  if (!wanted.job.has_processes()) return {};
  wanted.job.boot = boot_id(SystemRoot{});
  return read_processes(wanted.job, *job);
}

// "generation": a repeated request for a volume of a pod, at which that one is mounted.
Result<> read_generation(datasets::StageRequest& wanted, const json::object& body) {
  if (!body.contains("generation")) return {};
  const auto generation = get_int(body, "generation").value_or(0);
  if (generation <= 0 || wanted.datasets.size() != 1 || !wanted.job.is_set())
    return fail(Errc::Invalid, "generation is not the number of one dataset's copy, for a job");
  wanted.generation = static_cast<std::uint64_t>(generation);
  return {};
}

// "prefetch" and "by". Even if a scheduler's job requests a prefetch, that job gets no lease: the dataset is
// for a later job.
Result<> read_prefetch(datasets::StageRequest& wanted, const json::object& body) {
  wanted.demand.is_prefetch = get_bool(body, "prefetch").value_or(false);
  const auto by = get_string(body, "by");
  if (!wanted.demand.is_prefetch) {
    if (by) return fail(Errc::Invalid, "by is for a prefetch", "add \"prefetch\": true, or leave it out");
    return {};
  }
  const bool has_more = wanted.lease || body.contains("hold") || wanted.offline || wanted.generation != 0;
  if (has_more || wanted.demand.max_rate != 0)
    return fail(Errc::Invalid,
                "a prefetch has no lease_s, hold, max_rate, offline or generation: it is kept until it is "
                "asked for",
                "\"by\" decides how fast it is");
  wanted.job = {};
  wanted.asker.scheduler_job.clear();
  if (!by) return {};
  wanted.demand.by = parse_rfc3339(*by);
  if (!wanted.demand.by)
    return fail(Errc::Invalid, "by: '" + printable(*by) + "' is not a time",
                "for example: 2026-11-25T18:00:00Z");
  return {};
}

// "wait_s": a number of seconds; null means no limit. Without it, a prefetch has no limit, for nobody waits
// for it, and any other staging fails at once.
Result<> read_wait(datasets::StageRequest& wanted, const json::object& body) {
  const json::value* wait = body.if_contains("wait_s");
  const bool is_prefetch = get_bool(body, "prefetch").value_or(false);
  if (wait == nullptr ? is_prefetch : wait->is_null()) wanted.wait.reset();
  if (wait == nullptr || wait->is_null()) return {};
  const auto seconds = get_int(body, "wait_s");
  if (!seconds || *seconds < 0 || *seconds > kLongestWait)
    return fail(Errc::Invalid, "wait_s is not a number of seconds, nor null for no limit");
  wanted.wait = std::chrono::seconds(*seconds);
  return {};
}

// "now": all datasets, or those of the list, may be read before they are complete. Their views have to end,
// so they need a lease.
Result<> read_now(datasets::StageRequest& wanted, const json::object& body) {
  wanted.now = get_bool(body, "now").value_or(false);
  if (const json::array* names = get_array(body, "now")) {
    const std::set<std::string> all(wanted.datasets.begin(), wanted.datasets.end());
    for (const json::value& name : *names) {
      if (!name.is_string() || !all.contains(std::string(name.get_string())))
        return fail(Errc::Invalid, "now is neither a boolean nor a list of the request's datasets");
      wanted.now_only.emplace(name.get_string());
    }
    wanted.now = !names->empty();
  }
  if (!wanted.now) return {};
  if (wanted.demand.is_prefetch || wanted.allow_dirty || wanted.offline || wanted.generation != 0)
    return fail(Errc::Invalid, "now is not for a prefetch, allow_dirty, offline or a generation",
                "leave one of them out");
  if (wanted.wants_lease()) return {};
  return fail(Errc::Invalid, "now needs a lease: a live view ends with it",
              "use `spark-stage run --now`, or --lease or --hold");
}

Asker asker_for(const datasets::StageRequest& wanted, const api::Caller& caller) {
  Asker asker = asker_of(caller);
  if (wanted.process.pid != 0)
    asker.holder = process_in_words(wanted.process.pid) + user_in_words(caller.uid);
  if (wanted.job.is_set()) {
    asker.holder = staging::in_words(wanted.job);
    asker.scheduler_job = wanted.job.key();
    if (wanted.job.has_processes()) asker.user = wanted.job.user;
  }
  return asker;
}

}  // namespace

Result<std::vector<std::string>> dataset_names(const json::object& body) {
  std::vector<std::string> names;
  const json::array* listed = get_array(body, "datasets");
  if (listed == nullptr) return names;
  if (listed->size() > kMostNames) {
    return fail(Errc::Invalid,
                "the request names " + std::to_string(listed->size()) + " datasets; at most " +
                    std::to_string(kMostNames) + " are taken at once",
                "ask for them in several requests");
  }
  for (const json::value& name : *listed) {
    if (!name.is_string()) return fail(Errc::Invalid, "a dataset's name is a string");
    names.emplace_back(name.get_string());
  }
  return names;
}

Result<datasets::StageRequest> read_staging(const Request& request) {
  datasets::StageRequest wanted;
  auto names = dataset_names(request.body);
  if (!names) return names.take_error();
  wanted.datasets = std::move(*names);
  if (const auto seconds = get_int(request.body, "lease_s")) {
    // Ten years: longer than any use, and within the range of every clock.
    if (*seconds <= 0 || *seconds > 10LL * 366 * 86400) {
      return fail(Errc::Invalid, "lease_s is not a lease's length in seconds", "a lease has to end");
    }
    wanted.lease = std::chrono::seconds(*seconds);
  }
  if (const auto rate = get_int(request.body, "max_rate")) {
    if (*rate <= 0) return fail(Errc::Invalid, "max_rate is not a rate in bytes per second");
    wanted.demand.max_rate = static_cast<Bytes>(*rate);
  }
  wanted.offline = get_bool(request.body, "offline").value_or(false);
  if (auto read = read_wait(wanted, request.body); !read) return read.take_error();
  wanted.accepts_source = get_bool(request.body, "accept_source").value_or(false);
  wanted.allow_dirty = get_bool(request.body, "allow_dirty").value_or(false);
  if (auto held = read_hold(wanted, request); !held) return held.take_error();
  read_callers(wanted, request.caller.pid);
  if (auto read = read_job(wanted, request); !read) return read.take_error();
  wanted.asker = asker_for(wanted, request.caller);
  if (auto read = read_generation(wanted, request.body); !read) return read.take_error();
  if (auto read = read_prefetch(wanted, request.body); !read) return read.take_error();
  if (auto read = read_now(wanted, request.body); !read) return read.take_error();
  return wanted;
}

}  // namespace spark
