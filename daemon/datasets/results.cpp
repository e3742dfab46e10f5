// What a request gets in the end: a copy that is served as it is, the result of a staging, or a live view;
// and its lease.
#include <unistd.h>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/datasets/requests.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"

namespace spark::datasets {
// For the request, as a worker holds what it staged.
asio::awaitable<Outcome> Requests::hold_copy(TaskPtr task) {
  json::object copy = **task->ended;
  Lease lease;
  lease.id = task->hold;
  lease.dataset = task->dataset.name;
  lease.generation = get_count(copy, "generation");
  lease.holder = "a request that is under way";
  lease.process = staging::process_with(::getpid());
  task->was_tried = true;
  const auto held = co_await leases_.serve(std::move(lease), get_text(copy, "path"));
  if (!held) co_return fail_with(held.error(), "dataset " + printable(task->dataset.name));
  co_return copy;
}

// The object of `stage --json` as specified in the API, with the requested lease, which is granted here.
asio::awaitable<Outcome> Requests::result_of(TaskPtr task, json::object result, const StageRequest& request,
                                             std::vector<std::string>& granted) {
  result["name"] = printable(task->dataset.name);
  if (get_string(result, "state") != "live") result["state"] = "ready";
  result.erase("reserved");  // internal to the daemon and its worker
  result.erase("blocked_by");
  result.erase("held");
  if (!task->dataset.env.empty()) result["env"] = task->dataset.env;
  if (!request.demand.is_prefetch) prefetches_.taken_over(task->dataset.name);
  if (!request.wants_lease()) co_return result;
  const auto generation = get_count(result, "generation");
  const auto lease = co_await grant(request, *task, generation, granted);
  if (!lease) co_return fail_with(lease.error(), "staging " + printable(task->dataset.name));
  result["lease"] = *lease;
  if (request.demand.by) {
    const auto late = lateness(request.demand, context_.clock.wall());
    result["by"] = rfc3339(*request.demand.by);
    result["late_s"] = late ? json::value(late->count()) : json::value(nullptr);
  }
  co_return result;
}

JobClaim Requests::claim_of(const StageRequest& request, const std::string& dataset) const {
  JobClaim claim{request.job, dataset, {}};
  if (request.lease) claim.expires = context_.clock.wall() + *request.lease;
  return claim;
}

// The ID of the requested lease. `granted`: the leases to end if the request fails.
asio::awaitable<Result<std::string>> Requests::grant(const StageRequest& request, const Task& task,
                                                     std::uint64_t generation,
                                                     std::vector<std::string>& granted) {
  std::string dataset = task.dataset.name;
  if (request.demand.is_prefetch) {
    std::string holder = request.asker.holder;
    co_return co_await prefetches_.keep(std::move(dataset), generation, request.demand, std::move(holder));
  }
  if (request.job.is_set()) {
    JobClaim claim = claim_of(request, dataset);
    if (generation == 0) views_.use(task, job_leases_.id_for(claim, generation));
    co_return co_await job_leases_.hold(std::move(claim), generation);
  }
  Lease lease;
  lease.id = new_lease_id();
  lease.dataset = std::move(dataset);
  lease.generation = generation;
  lease.holder = request.asker.holder;
  lease.process = request.process;
  lease.cgroup = request.cgroup;
  if (request.lease) lease.expires = context_.clock.wall() + *request.lease;
  const std::string id = lease.id;
  granted.push_back(id);
  // At once: the staging may end before the lease is in the catalog.
  if (generation == 0) views_.use(task, id);
  activity_.early_leases.insert(id);
  const auto held = co_await leases_.grant(std::move(lease));
  if (!held) co_return fail(held.error());
  co_return id;
}

}  // namespace spark::datasets
