#include "daemon/outputs/transfer.hpp"

#include <algorithm>
#include <filesystem>

#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"

namespace spark::outputs {
namespace {

constexpr Duration kLongestRetry{60'000};

json::object no_progress() {
  return {{"phase", "queued"}, {"bytes_done", 0},  {"bytes_total", 0},
          {"files_done", 0},   {"files_total", 0}, {"bytes_per_second", 0},
          {"seconds", 0},      {"eta_s", nullptr}, {"bottleneck", ""}};
}

std::string continues(const Error& why) {
  return why.what + "; it continues when that is over";
}

// Errors that a volume may cause as it goes away, from the worker's point of view: while it is being
// remounted, its folder does not exist.
bool may_pass(const Error& error) {
  switch (error.kind) {
    case Errc::NoSpace:
    case Errc::Mismatch:
    case Errc::Invalid:
    case Errc::Denied:
    case Errc::Refused:
    case Errc::Unsupported:
      return false;
    default:
      return true;
  }
}

// At a low rate, the next piece is due only after some time.
Duration stalled_after(const Timings& timings, Bytes rate) {
  constexpr Bytes kInFlight = 64 << 20;
  return timings.stalled + Duration(rate == 0 ? 0 : kInFlight * 1000 / rate);
}

tl::unexpected<Error> explain(const StageOutRequest& request, Error error) {
  error.what = request.doing() + ": " + error.what +
               "; nothing incomplete is visible there, and the local copy is as it was";
  return fail(std::move(error));
}

// One with a rate of its own leaves room for others, maybe for hours.
workers::UserTurns::Claim claim_of(const StageOutRequest& request, std::uint64_t job) {
  constexpr std::size_t kMostAtOnce = 4;  // of a user; each has its own buffers
  const uid_t user = request.asker.uid;
  if (request.max_rate == 0) return {request.volume, user, job};
  return {request.volume + " by uid " + std::to_string(user), user, job, kMostAtOnce};
}

}  // namespace

Transfer::Transfer(const Context& context, workers::UserTurns& turns, StageOutRequest request,
                   std::shared_ptr<Job> job)
    : context_(context),
      turns_(turns),
      request_(std::move(request)),
      job_(std::move(job)),
      claim_(claim_of(request_, job_->id())),
      progress_(no_progress()),
      pause_(context.executor),
      durable_noted_(context.executor) {}

void Transfer::note_durable(Result<> durable) {
  if (durable) job_->note_accepted(accepted_of(request_));
  durable_ = std::move(durable);
  durable_noted_.notify();
}

asio::awaitable<Result<>> Transfer::until_durable() {
  while (!durable_) co_await durable_noted_.wait();
  co_return *durable_;
}

asio::awaitable<Outcome> Transfer::run() {
  const auto self = shared_from_this();
  auto sent = co_await send();
  turns_.give_back(claim_);
  if (cancelled_ && (!sent || lacks_shards(*sent))) sent = fail(Error(*cancelled_));
  co_return sent;
}

asio::awaitable<void> Transfer::take_turn() {
  if (turns_.has(claim_)) co_return;
  const std::string before = attempt_ && attempt_->has_yielded ? attempt_->given_up + "; " : "";
  std::function<void(std::uint64_t)> on_wait = [this, before](std::uint64_t first) {
    progress_["phase"] = "queued";
    progress_["reason"] =
        before + "job " + std::to_string(first) + " is sent to " + printable(request_.volume) + " first";
    show(progress_);
  };
  workers::UserTurns::Claim mine = claim_;
  co_await turns_.take(std::move(mine), std::move(on_wait));
}

asio::awaitable<Outcome> Transfer::send() {
  unsigned tries = 0;
  Duration pause = context_.timings.retry;
  while (!cancelled_) {
    co_await take_turn();
    if (cancelled_) break;
    auto place = context_.find_volume(request_.volume);
    if (!place && place.error().kind != Errc::Unavailable) co_return explain(request_, place.error());
    if (!place) {
      show_stalled(continues(place.error()));
      co_await wait(context_.timings.look);
      continue;
    }
    auto sent = co_await attempt(std::move(*place));
    if (sent && !cancelled_ && !lacks_shards(*sent)) {
      note_progress(*attempt_, {{"published", true}});
      co_await prune(*sent);
    }
    attempt_->is_watched = false;
    if (sent || cancelled_) co_return sent;
    if (attempt_->has_yielded) {
      turns_.give_back(claim_);
      continue;
    }
    const bool is_away = attempt_->saw_outage || !context_.find_volume(request_.volume);
    if (attempt_->is_final || !may_pass(sent.error()) || (!is_away && sent.error().kind == Errc::NotFound))
      co_return explain(request_, sent.error());
    if (attempt_->has_moved || is_away) {
      tries = 0;
      pause = context_.timings.retry;
    }
    if (!is_away && ++tries >= context_.timings.tries) co_return explain(request_, sent.error());
    log::warning("stage-out to " + printable(request_.destination()) + " stalled: " + sent.error().message());
    show_stalled(continues(sent.error()));
    if (!is_away) turns_.give_back(claim_);
    co_await wait(is_away ? context_.timings.look : pause);
    if (!is_away) pause = std::min(pause * 2, kLongestRetry);
  }
  co_return fail(Error(*cancelled_));
}

asio::awaitable<Outcome> Transfer::attempt(VolumePlace place) {
  auto attempt = std::make_shared<Attempt>();
  attempt_ = attempt;
  attempt->last_moved = context_.clock.steady();
  const config::EngineSettings& engine = context_.config().cache.engine;
  workers::Call call = place.call(request_.volume, "stage-out", to_json(request_));
  call.request["threads"] = engine.threads;
  call.request["depth"] = engine.depth;
  call.request["chunk"] = engine.chunk;
  call.request["shard_sent_ns"] = reached_.shard_sent_ns;
  call.on_progress = [this, attempt](const json::object& progress) { note_progress(*attempt, progress); };
  call.on_start = [this, attempt](pid_t pid) {
    attempt->worker = pid;
    set_priority(*attempt);
  };
  launch(context_.executor, "watching the stage-out to " + request_.destination(), watch(attempt));
  const workers::Cancellation cancellation = attempt->cancellation;
  auto sent = co_await context_.runner.run(std::move(call), cancellation);
  attempt->worker = 0;
  attempt->is_over = true;
  if (!sent && !attempt->given_up.empty()) co_return fail(Errc::Unavailable, attempt->given_up);
  if (const json::object* error = sent ? get_object(*sent, "error") : nullptr; error != nullptr) {
    attempt->is_final = true;
    co_return fail(error_from_json(*error));
  }
  if (const auto shard = sent ? get_int(*sent, "shard_sent_ns") : std::nullopt; shard && *shard > 0)
    reached_.shard_sent_ns = *shard;
  co_return sent;
}

// Needed because a worker that hangs in the kernel reports nothing.
asio::awaitable<void> Transfer::watch(std::shared_ptr<Attempt> attempt) {
  const auto self = shared_from_this();
  Timer timer(context_.executor);
  for (;;) {
    timer.expires_after(context_.timings.look);
    co_await timer.wait();
    if (!attempt->is_watched) co_return;
    set_priority(*attempt);
    look_at(*attempt);
  }
}

void Transfer::look_at(Attempt& attempt) {
  if (attempt.is_over) {  // older copies are deleted, which then goes on beside the next copy
    if (must_yield(attempt)) turns_.give_back(claim_);
    return;
  }
  const SteadyTime now = context_.clock.steady();
  const auto place = context_.find_volume(request_.volume);
  if (!place) {
    attempt.saw_outage = true;
    attempt.back_since = now;
    show_stalled(continues(place.error()));
    // Its writes would wait for a volume that this host has lost.
    if (place.error().kind != Errc::Unavailable) give_up(attempt, place.error().what);
  } else if (attempt.saw_outage && now - std::max(attempt.back_since, attempt.last_moved) >
                                       context_.timings.stuck - context_.timings.stalled +
                                           stalled_after(context_.timings, request_.max_rate)) {
    give_up(attempt, "its writer hangs although the volume is back; it is replaced");
  } else if (must_yield(attempt)) {
    attempt.has_yielded = true;
    ++yields_;
    give_up(attempt,
            "no byte moved for " + format_duration(now - attempt.last_moved) + ", so other copies go first");
    log::warning("stage-out to " + printable(request_.destination()) + ": " + attempt.given_up);
  } else if (now - attempt.last_moved > stalled_after(context_.timings, request_.max_rate)) {
    show_stalled("no byte moved for " + format_duration(now - attempt.last_moved));
  }
}

// The user with whose rights it runs can stop its worker. Each time it waits longer: the volume may be slow.
bool Transfer::must_yield(const Attempt& attempt) const {
  constexpr unsigned kMost = 5;
  const Timings& timings = context_.timings;
  const Duration limit = (timings.stuck - timings.stalled + stalled_after(timings, request_.max_rate)) *
                         std::min(yields_ + 1, kMost);
  return context_.clock.steady() - std::max(attempt.back_since, attempt.last_moved) > limit &&
         turns_.has(claim_) && turns_.is_waited_for(claim_);
}

void Transfer::give_up(Attempt& attempt, std::string reason) {
  show_stalled(reason);
  attempt.given_up = std::move(reason);
  attempt.cancellation.cancel();
}

void Transfer::set_priority(Attempt& attempt) {
  const auto wanted =
      context_.must_yield() && !request_.hurries ? workers::Priority::Idle : workers::Priority::Normal;
  if (attempt.worker == 0 || wanted == attempt.priority) return;
  attempt.priority = wanted;
  if (const auto set = workers::set_priority(attempt.worker, wanted); !set) log::survived(set.error());
}

void Transfer::note_progress(Attempt& attempt, const json::object& progress) {
  if (const auto what = get_string(progress, "deletes")) {  // at once: the worker's end may never be told
    attempt.last_moved = context_.clock.steady();
    return log::info("deleting " + *what + " for " + printable(request_.destination()) + ": " +
                     get_text(progress, "because"));
  }
  if (get_bool(progress, "published").value_or(false)) {
    attempt.last_moved = context_.clock.steady();
    reached_.is_published = true;
    return show(progress_);
  }
  const std::int64_t bytes = get_int(progress, "bytes_done").value_or(0);
  const bool copies = get_string(progress, "phase") == "copying";
  if (bytes != attempt.last_bytes || !copies) {
    // Bytes of an earlier attempt appear immediately and do not count as progress.
    if (copies && attempt.last_bytes > 0) {
      attempt.has_moved = true;
      yields_ = 0;
    }
    attempt.last_bytes = bytes;
    attempt.last_moved = context_.clock.steady();
    attempt.saw_outage = false;
    show(progress);
  }
}

void Transfer::show_stalled(const std::string& reason) {
  progress_["phase"] = "stalled";
  progress_["reason"] = reason;
  progress_["bytes_per_second"] = 0;
  progress_["eta_s"] = nullptr;
  show(progress_);
}

void Transfer::show(json::object progress) {
  progress["dataset"] = printable(request_.destination());
  if (reached_.shard_sent_ns > 0) progress["shard_sent"] = true;
  if (reached_.is_published) progress["published"] = true;
  progress_ = std::move(progress);
  job_->set_progress(progress_);
}

asio::awaitable<void> Transfer::wait_for_shards(const json::object& answer) {
  show_stalled(missing_shards(answer, request_.nodes));
  co_await wait(context_.timings.shards);
}

asio::awaitable<void> Transfer::wait(Duration time) {
  pause_.expires_after(time);
  co_await pause_.wait();
}

void Transfer::cancel(std::optional<Error> why) {
  cancelled_ = why.value_or(Error{Errc::Cancelled,
                                  "stage-out to " + printable(request_.destination()) + " was cancelled",
                                  "the same command resumes it; the local copy is as it was"});
  pause_.cancel();
  if (!turns_.has(claim_)) turns_.give_back(claim_);  // its place in the queue
  if (attempt_) attempt_->cancellation.cancel();
}

}  // namespace spark::outputs
