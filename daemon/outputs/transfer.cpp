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

}  // namespace

Transfer::Transfer(const Context& context, StageOutRequest request, std::shared_ptr<Job> job)
    : context_(context),
      request_(std::move(request)),
      job_(std::move(job)),
      progress_(no_progress()),
      pause_(context.executor),
      durable_noted_(context.executor) {}

void Transfer::note_durable(Result<> durable) {
  durable_ = std::move(durable);
  durable_noted_.notify();
}

asio::awaitable<Result<>> Transfer::until_durable() {
  while (!durable_) co_await durable_noted_.wait();
  co_return *durable_;
}

asio::awaitable<Outcome> Transfer::run() {
  const auto self = shared_from_this();
  unsigned tries = 0;
  Duration pause = context_.timings.retry;
  while (!is_cancelled_) {
    auto place = context_.find_volume(request_.volume);
    if (!place && place.error().kind != Errc::Unavailable) co_return explain(place.error());
    if (!place) {
      show_stalled(continues(place.error()));
      co_await wait(context_.timings.look);
      continue;
    }
    auto sent = co_await attempt(std::move(*place));
    if (sent && !is_cancelled_ && !lacks_shards(*sent)) {
      is_published_ = true;
      show(progress_);
      co_await prune(*sent);
    }
    if (sent || is_cancelled_) co_return sent;
    const bool is_away = attempt_->saw_outage || !context_.find_volume(request_.volume);
    if (attempt_->is_final || !may_pass(sent.error()) || (!is_away && sent.error().kind == Errc::NotFound))
      co_return explain(sent.error());
    if (attempt_->has_moved || is_away) {
      tries = 0;
      pause = context_.timings.retry;
    }
    if (!is_away && ++tries >= context_.timings.tries) co_return explain(sent.error());
    log::warning("stage-out to " + printable(request_.destination()) + " stalled: " + sent.error().message());
    show_stalled(continues(sent.error()));
    co_await wait(is_away ? context_.timings.look : pause);
    if (!is_away) pause = std::min(pause * 2, kLongestRetry);
  }
  co_return fail(Errc::Cancelled, "stage-out to " + printable(request_.destination()) + " was cancelled",
                 "the same command resumes it; the local copy is as it was");
}

tl::unexpected<Error> Transfer::explain(Error error) const {
  error.what = "sending " + printable(request_.source) + " to " + printable(request_.destination()) + ": " +
               error.what + "; nothing incomplete is visible there, and the local copy is as it was";
  return fail(std::move(error));
}

asio::awaitable<Outcome> Transfer::attempt(VolumePlace place) {
  auto attempt = std::make_shared<Attempt>();
  attempt_ = attempt;
  attempt->last_moved = context_.clock.steady();
  const config::EngineSettings& engine = context_.config().cache.engine;
  workers::Call call;
  call.verb = "stage-out";
  call.subject = "volume " + printable(request_.volume);
  call.request = how_to_json(request_);
  place.add_to(call.request);
  call.request["threads"] = engine.threads;
  call.request["depth"] = engine.depth;
  call.request["chunk"] = engine.chunk;
  call.request["shard_sent_ns"] = shard_sent_ns_;
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
    shard_sent_ns_ = *shard;
  co_return sent;
}

// Needed because a worker that hangs in the kernel reports nothing.
asio::awaitable<void> Transfer::watch(std::shared_ptr<Attempt> attempt) {
  const auto self = shared_from_this();
  Timer timer(context_.executor);
  for (;;) {
    timer.expires_after(context_.timings.look);
    co_await timer.wait();
    if (attempt->is_over) co_return;
    set_priority(*attempt);
    look_at(*attempt);
  }
}

void Transfer::look_at(Attempt& attempt) {
  const SteadyTime now = context_.clock.steady();
  const auto place = context_.find_volume(request_.volume);
  if (!place) {
    attempt.saw_outage = true;
    attempt.back_since = now;
    show_stalled(continues(place.error()));
    // Its writes would wait for a volume that this host has lost.
    if (place.error().kind != Errc::Unavailable) give_up(attempt, place.error().what);
  } else if (attempt.saw_outage && now - std::max(attempt.back_since, attempt.last_moved) >
                                       context_.timings.stuck - context_.timings.stalled + stalled_after()) {
    give_up(attempt, "its writer hangs although the volume is back; it is replaced");
  } else if (now - attempt.last_moved > stalled_after()) {
    show_stalled("no byte moved for " + format_duration(now - attempt.last_moved));
  }
}

// At a low rate, the next piece is due only after some time.
Duration Transfer::stalled_after() const {
  constexpr Bytes kInFlight = 64 << 20;
  const Bytes rate = request_.max_rate;
  return context_.timings.stalled + Duration(rate == 0 ? 0 : kInFlight * 1000 / rate);
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
    return log::info("deleting " + *what + " beside " + printable(request_.destination()) + ": " +
                     get_string(progress, "because").value_or(""));
  }
  const std::int64_t bytes = get_int(progress, "bytes_done").value_or(0);
  const bool copies = get_string(progress, "phase") == "copying";
  if (bytes != attempt.last_bytes || !copies) {
    // Bytes of an earlier attempt appear immediately and do not count as progress.
    if (copies && attempt.last_bytes > 0) attempt.has_moved = true;
    attempt.last_bytes = bytes;
    attempt.last_moved = context_.clock.steady();
    attempt.saw_outage = false;
    show(progress);
  }
}

void Transfer::show_queued(const std::string& reason) {
  progress_["phase"] = "queued";
  progress_["reason"] = reason;
  show(progress_);
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
  if (shard_sent_ns_ > 0) progress["shard_sent"] = true;
  if (is_published_) progress["published"] = true;
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

void Transfer::cancel() {
  is_cancelled_ = true;
  pause_.cancel();
  if (attempt_) attempt_->cancellation.cancel();
}

}  // namespace spark::outputs
