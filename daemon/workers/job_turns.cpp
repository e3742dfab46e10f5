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
  co_await take(job);
  auto ended = co_await runner_.run(std::move(call), cancellation);
  give_back(*job);
  co_return ended;
}

asio::awaitable<void> JobTurns::take(std::shared_ptr<Job> job) {
  UserTurns::Claim claim = claim_of(*job);
  if (claim.user == 0) co_return;
  std::function<void(std::uint64_t)> on_wait = [&job](std::uint64_t first) {
    json::object progress{{"phase", "queued"}, {"reason", "job " + std::to_string(first) + " goes first"}};
    if (!job->subjects().empty()) progress["dataset"] = printable(job->subjects().front());
    job->set_progress(std::move(progress));
  };
  co_await turns_.take(std::move(claim), std::move(on_wait));
}

void JobTurns::give_back(const Job& job) {
  turns_.give_back(claim_of(job));
}

}  // namespace spark::workers
