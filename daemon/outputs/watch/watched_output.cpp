#include "daemon/outputs/watch/watched_output.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"

namespace spark::outputs {
namespace {

using config::Complete;

constexpr Duration kPauseOfPointer{60'000}, kLongestPauseOfLooks{60'000};

// A checkpoint newer than the complete ones that will be complete soon.
bool is_any_settling(const std::vector<LocalCheckpoint>& local) {
  const auto newest =
      std::ranges::find_if(local, [](const auto& one) { return one.incomplete.empty() || one.is_settling; });
  return newest != local.end() && newest->is_settling;
}

// Of a core, by a worker's look.
Duration cpu_time_in(const json::object& answer) {
  return std::chrono::ceil<Duration>(std::chrono::microseconds(get_int(answer, "cpu_us").value_or(0)));
}

// Each sending moves the pointer `latest` on the volume. One that is interrupted right after it has published
// a checkpoint leaves it where it was, and so does a person who deletes the checkpoint that it names.
asio::awaitable<void> correct_pointer(const Context& context, const config::Output& output, uid_t owner) {
  const auto place = context.find_volume(output.volume);
  if (!place) co_return;
  json::object request{{"path", output.to}, {"uid", owner}, {"rule", rule_of(output)}};
  auto call = place->call(output.volume, "point-output", std::move(request), context.timings.list);
  const auto pointed = co_await context.runner.run(std::move(call));
  const bool is_jobs_own = !pointed && pointed.error().kind == Errc::Refused;
  if (!pointed && !is_jobs_own) log::survived(pointed.error());
}

// Those that are on the volume, though nothing is known of a sending: which state is there?
json::array unknown_states(const std::vector<LocalCheckpoint>& local, const Changes& sent,
                           const json::object& listed) {
  json::array unknown;
  const auto published = staging::rows_from_json<PublishedCheckpoint>(listed, "copies");
  for (const LocalCheckpoint& one : local) {
    const bool is_there = one.incomplete.empty() && find_named(published, one.name) != nullptr;
    if (is_there && !sent.contains(one.name)) unknown.emplace_back(one.name);
  }
  return unknown;
}

}  // namespace

WatchedOutput::WatchedOutput(const Context& context, StageOuts& stage_outs, config::Output settings)
    : context_(context),
      stage_outs_(stage_outs),
      settings_(std::move(settings)),
      known_(context, settings_),
      others_(context, settings_),
      cleanup_(context, stage_outs, settings_),
      pause_{Timer(context.executor)} {}

void WatchedOutput::stop() {
  is_stopped_ = true;
  cleanup_.stop();
  others_.stop();
  pause_.timer.cancel();
}

asio::awaitable<void> WatchedOutput::run() {
  const auto self = shared_from_this();
  if (settings_.nodes > 1) launch(context_.executor, "the signs of output " + settings_.name, announce());
  while (!is_stopped_) {
    co_await work();
    if (is_stopped_) co_return;
    // A check of many files takes at most a twentieth of a core. Once a job has ended, its last checkpoint
    // may have settled by the next.
    const bool is_soon = std::exchange(pause_.is_short, false);
    const Duration rest = std::min(pause_.cpu_time * 20, kLongestPauseOfLooks);
    pause_.timer.expires_after(is_soon ? context_.timings.watch : std::max(context_.timings.watch, rest));
    co_await pause_.timer.wait();
  }
}

asio::awaitable<void> WatchedOutput::announce() {
  const auto self = shared_from_this();
  co_await others_.announce();
}

// Uses a separate worker, because it drops its privileges permanently.
asio::awaitable<Result<WatchedOutput::Seen>> WatchedOutput::look() {
  co_await known_.load();
  workers::Call call{"scan-output",
                     "output " + settings_.name,
                     {{"path", settings_.path.native()},
                      {"rule", rule_of(settings_)},
                      {"flushed", staging::states_to_json(known_.flushed())},
                      {"unchanged", staging::states_to_json(known_.unchanged())},
                      {"unproven", staging::states_to_json(known_.unproven())}},
                     context_.timings.scan};
  if (boot_ns_) call.request["boot_ns"] = *boot_ns_;
  const SteadyTime begun = context_.clock.steady();
  const auto answer = co_await context_.runner.run(std::move(call));
  if (!answer) co_return fail(answer.error());
  if (!boot_ns_) boot_ns_ = get_int(*answer, "boot_ns");
  Seen seen;
  seen.missing = get_text(*answer, "missing");
  seen.is_away = seen.is_unmounted = get_bool(*answer, "unmounted").value_or(false);
  seen.owner = static_cast<uid_t>(get_int(*answer, "uid").value_or(0));
  seen.local = staging::rows_from_json<LocalCheckpoint>(*answer, "checkpoints");
  known_.mark_remnants(seen.local);
  const std::string mount = get_text(*answer, "mount");
  const std::string unmounted = seen.missing.empty() ? known_.unmounted({mount, seen.owner}, seen.local) : "";
  if (!unmounted.empty()) {
    seen.is_away = true;
    seen.missing = printable(settings_.path.native()) +
                   " lacks checkpoints that it had on the file system at " + printable(unmounted) +
                   ", which is not mounted there; if they were deleted, delete " + known_.file() +
                   " and restart spark-staged";
  }
  seen.best = get_text(*answer, "best");
  seen.misnamed = get_text(*answer, "other");
  seen.holding = {get_text(*answer, "held_in"),
                  static_cast<std::size_t>(get_int(*answer, "holds").value_or(0))};
  pause_.cpu_time = cpu_time_in(*answer);
  co_await list_published(seen);
  if (is_stopped_) co_return seen;  // the record is that of another
  if (seen.missing.empty()) {
    co_await known_.remember(begun, seen.local, seen.published ? &*seen.published : nullptr);
  } else {
    co_await known_.save();  // its file system may be mounted later
  }
  note_facts(seen);
  co_return seen;
}

// For a caller with a job that has just saved, or was just killed. Does not wait for a checkpoint that keeps
// changing.
asio::awaitable<Result<WatchedOutput::Seen>> WatchedOutput::look_until_settled() {
  auto seen = co_await look();
  for (unsigned looks = 0; seen && is_any_settling(seen->local) && looks < context_.timings.settle_looks;
       ++looks) {
    Timer timer(context_.executor);
    timer.expires_after(context_.timings.settle);
    co_await timer.wait();
    seen = co_await look();
  }
  co_return seen;
}

asio::awaitable<void> WatchedOutput::list_published(Seen& seen) {
  auto place = context_.find_readable(settings_.volume);
  if (!place) {
    seen.unlisted = place.error().what;
    co_return;
  }
  json::object request{{"path", settings_.to}, {"rule", rule_of(settings_)}};
  const auto owner = seen.missing.empty() ? std::optional(seen.owner) : known_.owner();
  if (owner) request["uid"] = *owner;
  auto list = place->call(settings_.volume, "list-published", request, context_.timings.list);
  auto answer = co_await context_.runner.run(std::move(list));
  if (answer) pause_.cpu_time += cpu_time_in(*answer);
  json::array check;
  if (answer && settings_.nodes <= 1) check = unknown_states(seen.local, known_.sent(), *answer);
  if (!check.empty()) {  // all their files are looked at
    request["check"] = std::move(check);
    auto look = place->call(settings_.volume, "list-published", std::move(request), context_.timings.scan);
    answer = co_await context_.runner.run(std::move(look));
    if (answer) pause_.cpu_time += cpu_time_in(*answer);
  }
  if (!answer) {
    seen.unlisted = answer.error().message();
    co_return;
  }
  seen.published = staging::rows_from_json<PublishedCheckpoint>(*answer, "copies");
  seen.pointer = get_text(*answer, "latest");
  seen.unreadable = staging::rows_from_json<UnreadableCopy>(*answer, "unreadable");
  seen.volume_bytes = get_count(*answer, "volume_bytes");
  seen.unknown = get_strings(*answer, "unknown");
  seen.begun = staging::rows_from_json<BegunCheckpoint>(*answer, "begun");
  others_.mark_stuck(seen.begun);
}

asio::awaitable<void> WatchedOutput::work() {
  bool has_just_ended = sending_ && !sending_->is_running();
  if (has_just_ended) {
    const json::object event = sending_->final_event();
    const json::object* result = get_object(event, "result");
    has_just_ended = result == nullptr || !lacks_shards(*result);  // those are other hosts' to send
    sending_ = nullptr;
    hold_.trouble.clear();
  }
  auto seen = co_await look();
  if (!seen) {
    facts_.reason = seen.error().message();
    others_.plan({}, 0);
    co_return;
  }
  if (is_stopped_) co_return;
  if (!seen->published) facts_.is_behind = false;
  if (!seen->missing.empty() || !seen->published) {
    others_.plan({}, 0);
    co_await stage_outs_.held().release(seen->holding);
    co_return;
  }
  CheckpointPlan plan = plan_checkpoints(settings_, *seen, known_.sent());
  const LocalCheckpoint* newest = newest_complete(seen->local);
  const bool is_newest_left =
      plan.send && newest != nullptr && plan.send->name == newest->name && !has_sent(*newest, seen->begun);
  facts_.is_behind = is_newest_left && (facts_.is_behind || (has_just_ended && !was_tried(*plan.send)));
  hold_.is_needed = hold_.is_needed || facts_.is_behind;
  if (!plan.send && !is_busy()) retry_.error.clear();  // it was of one that need not be sent any more
  // If a sending ended during the check, it is handled at the next one, because this plan does not include
  // it.
  if (settings_.complete != Complete::OnRequest && plan.send && !is_busy() &&
      (!was_tried(*plan.send) || context_.clock.steady() >= retry_.next)) {
    LocalCheckpoint next = *plan.send;
    // Without waiting: a newer checkpoint may be complete before all hosts' shards are there.
    const auto job = co_await send(std::move(next), *seen, Asked::ByRule);
    if (!job) retry_.error = job.error().message();
  }
  tell_others(plan.awaited, seen->owner);
  // A checkpoint that was saved again after it was sent is known by the record alone.
  if (known_.has_loaded()) co_await cleanup_.run(std::move(plan.surplus), seen->owner);
  co_await stage_outs_.held().release(seen->holding);
  const bool is_right = seen->published->empty() || seen->pointer == seen->published->front().name;
  if ((is_right && seen->unreadable.empty()) || is_busy() || context_.clock.steady() < next_pointer_)
    co_return;
  next_pointer_ = context_.clock.steady() + kPauseOfPointer;
  co_await correct_pointer(context_, settings_, seen->owner);
}

}  // namespace spark::outputs
