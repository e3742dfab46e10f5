#include "daemon/datasets/leases/job_leases.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/timer.hpp"
#include "daemon/token.hpp"

namespace spark::datasets {
namespace {

constexpr std::chrono::seconds kLookDeadline{10};

// Adds a job's later information to its earlier information; processes that have ended are dropped.
void merge(Lease& lease, const JobClaim& claim) {
  if (!claim.job.user.empty()) lease.job.user = claim.job.user;
  for (const staging::ProcessId& process : claim.job.processes) {
    if (std::ranges::find(lease.job.processes, process) == lease.job.processes.end())
      lease.job.processes.push_back(process);
  }
  std::erase_if(lease.job.processes, [](const auto& process) { return !staging::is_running(process); });
  lease.holder = staging::in_words(lease.job);
  if (claim.expires) lease.expires = claim.expires;
}

// The job's lease under this ID, existing or new.
Lease lease_for(const Leases& leases, const JobClaim& claim, std::string id) {
  Lease lease;
  if (const auto held = leases.all().find(id); held != leases.all().end()) lease = held->second;
  if (lease.id.empty()) lease.job = claim.job;
  lease.id = std::move(id);
  lease.dataset = claim.dataset;
  merge(lease, claim);
  return lease;
}

}  // namespace

void JobLeases::claim(const JobClaim& claim) {
  const std::string id = staging::job_lease_id(claim.job, claim.dataset);
  if (!leases_.all().contains(id)) granted_.erase(id);
  claims_.insert(id);
  seen_[claim.job.key()] = clock_.steady();
  leases_.hold(lease_for(leases_, claim, id));
}

std::string JobLeases::id_for(const JobClaim& claim, std::uint64_t generation) const {
  std::string id = staging::job_lease_id(claim.job, claim.dataset);
  const auto held = leases_.all().find(id);
  const bool has_another =
      held != leases_.all().end() && held->second.is_staged() && held->second.generation != generation;
  return has_another ? id + "@" + std::to_string(generation) : id;
}

asio::awaitable<Result<std::string>> JobLeases::hold(JobClaim claim, std::uint64_t generation) {
  const std::string id = id_for(claim, generation);
  Lease lease = lease_for(leases_, claim, id);
  lease.generation = generation;
  granted_.insert(id);
  const auto granted = co_await leases_.grant(std::move(lease));
  if (granted) co_return id;
  granted_.erase(id);
  co_return fail(granted.error());
}

void JobLeases::settle(const JobClaim& claim) {
  const std::string id = staging::job_lease_id(claim.job, claim.dataset);
  claims_.erase(claims_.find(id));
  const auto held = leases_.all().find(id);
  const bool is_held = held != leases_.all().end() && (held->second.is_staged() || is_granted(id));
  if (!claims_.contains(id) && held != leases_.all().end() && !is_held)
    (void)leases_.release(id);  // it exists
}

void JobLeases::keep(const std::string& dataset) {
  for (const Lease* lease : leases_.of(dataset))
    if (lease->job.is_set()) granted_.insert(lease->id);
}

Result<> JobLeases::end(const std::string& key) {
  bool found = false;
  for (const auto& job : jobs_.all()) {
    if (!job->is_running() || job->asker().scheduler_job != key) continue;
    found = true;
    if (const auto cancelled = job->cancel(); !cancelled) log::survived(cancelled.error());
  }
  std::vector<std::string> ids;
  for (const auto& [id, lease] : leases_.all()) {
    if (lease.job.is_set() && lease.job.key() == key) ids.push_back(id);
  }
  for (const std::string& id : ids) {
    (void)leases_.release(id);  // it exists
    granted_.erase(id);
  }
  seen_.erase(key);
  if (found || !ids.empty()) return {};
  return fail(Errc::NotFound, "no lease of job " + printable(key), "`spark-stage ls` shows the leases");
}

std::optional<std::string> JobLeases::user_of(const std::string& key) const {
  for (const auto& [id, lease] : leases_.all()) {
    if (lease.job.is_set() && lease.job.key() == key) return lease.job.has_processes() ? lease.job.user : "";
  }
  return std::nullopt;
}

asio::awaitable<void> JobLeases::watch() {
  Timer timer(leases_.executor());
  for (;;) {
    timer.expires_after(timings_.look);
    if (!co_await timer.wait()) co_return;
    const bool has_any =
        std::ranges::any_of(leases_.all(), [](const auto& one) { return one.second.job.has_processes(); });
    if (!has_any) {
      seen_.clear();
      continue;
    }
    const auto slurm_jobs = co_await ask_for_jobs_here();
    if (slurm_jobs) {
      end_those_gone(*slurm_jobs);
    } else {
      seen_.clear();  // unknown: the time without a process restarts
    }
  }
}

// The IDs of Slurm jobs with a process on this host; no value if they could not be determined.
asio::awaitable<std::optional<std::set<std::string>>> JobLeases::ask_for_jobs_here() {
  workers::Call call{"jobs-here", "the processes of Slurm's jobs", {}, kLookDeadline};
  const auto answer = co_await runner_.run(std::move(call));
  if (!answer) log::survived(answer.error());
  const json::array* ids = answer ? get_array(*answer, "slurm") : nullptr;
  if (ids == nullptr) co_return std::nullopt;
  std::set<std::string> jobs;
  for (const json::value& id : *ids) jobs.emplace(id.as_string());
  co_return jobs;
}

void JobLeases::end_those_gone(const std::set<std::string>& slurm_jobs) {
  std::map<std::string, bool> is_here;  // by job
  for (const auto& [id, lease] : leases_.all()) {
    if (!lease.job.has_processes()) continue;
    const bool has_step = slurm_jobs.contains(lease.job.id);
    is_here[lease.job.key()] |= has_step || std::ranges::any_of(lease.job.processes, staging::is_running);
  }
  const SteadyTime now = clock_.steady();
  std::erase_if(seen_, [&](const auto& one) { return !is_here.contains(one.first); });
  for (const auto& [key, here] : is_here) {
    const auto [seen, is_new] = seen_.try_emplace(key, now);
    if (here) seen->second = now;
    if (here || now - seen->second < timings_.gone) continue;
    log::info("job " + printable(key) + " has had no process here for " + format_duration(timings_.gone) +
              ": its leases end");
    (void)end(key);  // it has a lease
  }
}

}  // namespace spark::datasets
