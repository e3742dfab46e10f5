#include "daemon/workers/job_turns.hpp"

#include <string>
#include <utility>

#include "base/text.hpp"

namespace spark::workers {
namespace {

UserTurns::Claim claim_of(const Job& job) {
  constexpr std::size_t kMostAtOnce = 4;
  const uid_t user = job.asker().uid;
  return {job.verb() + " by uid " + std::to_string(user), user, job.id(), kMostAtOnce};
}

}  // namespace

void JobTurns::make_cancellable(Job& job, Cancellation cancellation) {
  job.on_cancel = [this, cancellation, claim = claim_of(job)]() mutable {
    cancellation.cancel();
    if (!turns_.has(claim)) turns_.give_back(claim);
  };
}

asio::awaitable<Result<json::object>> JobTurns::run(std::shared_ptr<Job> job, Call call,
                                                    Cancellation cancellation) {
  const UserTurns::Claim claim = claim_of(*job);
  const bool takes_turns = claim.user != 0;
  if (takes_turns) {
    std::function<void(std::uint64_t)> on_wait = [&job](std::uint64_t first) {
      json::object progress{{"phase", "queued"}, {"reason", "job " + std::to_string(first) + " goes first"}};
      if (!job->subjects().empty()) progress["dataset"] = printable(job->subjects().front());
      job->set_progress(std::move(progress));
    };
    UserTurns::Claim mine = claim;
    co_await turns_.take(std::move(mine), std::move(on_wait));
  }
  auto ended = co_await runner_.run(std::move(call), cancellation);
  if (takes_turns) turns_.give_back(claim);
  co_return ended;
}

}  // namespace spark::workers
