#include "staging/leases/lease_json.hpp"

namespace spark::staging {
namespace {

template <class Number>
Number number(const json::object& object, std::string_view key) {
  return static_cast<Number>(get_int(object, key).value_or(0));
}

json::object to_json(const SchedulerJob& job) {
  json::array processes;
  for (const ProcessId& process : job.processes)
    processes.push_back(json::object{{"pid", process.pid}, {"pid_start_time", process.start_time}});
  return {{"system", job.system},
          {"id", job.id},
          {"user", job.user},
          {"processes", std::move(processes)},
          {"boot", job.boot}};
}

SchedulerJob job_from_json(const json::object& object) {
  SchedulerJob job{get_text(object, "system"),
                   get_text(object, "id"),
                   get_text(object, "user"),
                   {},
                   get_text(object, "boot")};
  for (const json::object& one : objects_in(object, "processes")) {
    job.processes.push_back({number<pid_t>(one, "pid"), number<std::uint64_t>(one, "pid_start_time")});
  }
  return job;
}

}  // namespace

json::object to_json(const Lease& lease) {
  return {{"id", lease.id},
          {"dataset", lease.dataset},
          {"generation", lease.generation},
          {"holder", lease.holder},
          {"pid", lease.process.pid},
          {"pid_start_time", lease.process.start_time},
          {"cgroup", lease.cgroup.path.native()},
          {"cgroup_id", lease.cgroup.id},
          {"job", to_json(lease.job)},
          {"soft", lease.is_soft},
          {"expires", lease.expires ? seconds_since_1970(*lease.expires) : 0}};
}

Lease lease_from_json(const json::object& object) {
  Lease lease;
  lease.id = get_text(object, "id");
  lease.dataset = get_text(object, "dataset");
  lease.generation = number<std::uint64_t>(object, "generation");
  lease.holder = get_text(object, "holder");
  lease.process = {number<pid_t>(object, "pid"), number<std::uint64_t>(object, "pid_start_time")};
  lease.cgroup = {get_text(object, "cgroup"), number<std::uint64_t>(object, "cgroup_id")};
  lease.is_soft = get_bool(object, "soft").value_or(false);
  if (const json::object* job = get_object(object, "job")) lease.job = job_from_json(*job);
  if (const auto expires = number<std::int64_t>(object, "expires"); expires > 0) {
    lease.expires = WallTime(std::chrono::seconds(expires));
  }
  return lease;
}

}  // namespace spark::staging
