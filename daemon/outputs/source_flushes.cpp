#include "daemon/outputs/source_flushes.hpp"

namespace spark::outputs {

workers::Call SourceFlushes::call_for(const StageOutRequest& request) const {
  json::object asked{{"source", request.source}, {"uid", request.asker.uid}};
  const auto known = on_drive_.find({request.asker.uid, request.source});
  if (known != on_drive_.end()) asked["on_drive"] = known->second;
  return {"flush-source", "stage-out", std::move(asked), context_.timings.scan};
}

Result<std::int64_t> SourceFlushes::state_in(const Result<json::object>& flushed,
                                             const StageOutRequest& request) {
  constexpr std::size_t kMost = 4096;  // of all users; those that are forgotten are flushed again
  if (!flushed) return fail_with(flushed.error(), request.doing());
  const auto state = get_int(*flushed, "written");
  if (!state) return fail(Errc::Failed, request.doing() + ": the state of the source is not known");
  const std::int64_t identity = get_int(*flushed, "identity").value_or(0);
  if (on_drive_.size() >= kMost) on_drive_.clear();
  if (identity != 0) on_drive_.insert_or_assign({request.asker.uid, request.source}, identity);
  return *state;
}

asio::awaitable<Result<std::int64_t>> SourceFlushes::flush(StageOutRequest request,
                                                           std::shared_ptr<Job> job) {
  workers::Call call = call_for(request);
  workers::Cancellation never;
  const auto flushed = co_await workers_.run(std::move(job), std::move(call), never);
  co_return state_in(flushed, request);
}

asio::awaitable<Result<std::int64_t>> SourceFlushes::look_again(StageOutRequest request) {
  const workers::UserTurns::Claim claim{"looks by uid " + std::to_string(request.asker.uid),
                                        request.asker.uid, ++looks_};
  workers::UserTurns::Claim mine = claim;
  std::function<void(std::uint64_t)> unseen = [](std::uint64_t) {};
  co_await turns_.take(std::move(mine), std::move(unseen));
  workers::Call call = call_for(request);
  workers::Cancellation never;
  const auto flushed = co_await context_.runner.run(std::move(call), never);
  turns_.give_back(claim);
  co_return state_in(flushed, request);
}

}  // namespace spark::outputs
