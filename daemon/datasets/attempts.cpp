#include "daemon/datasets/attempts.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/log.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::datasets {
namespace {

constexpr Duration kLongestRetry{60'000};
// Stagings of cached data need no turn, and each has a worker: one request may name hundreds of them.
constexpr std::size_t kMostLooks = 8;  // at one source drive
constexpr Duration kLongestLook{30'000};

std::string doing(const Task& task) {
  return "staging " + printable(task.dataset.name);
}

// A copy of a file system that changes meanwhile matches none of its states.
tl::unexpected<Error> refuse_doubtful(const Task& task) {
  return fail(Errc::Refused,
              doing(task) + ": volume " + task.dataset.volume + " is " + task.attempt.doubt->reason,
              "let the other host unmount it, then stage again; --allow-dirty copies whatever is read there");
}

bool is_reserved(const Outcome& looked) {
  return looked && get_bool(*looked, "reserved").value_or(false);
}

struct Retries {
  unsigned tries;
  Duration pause;  // before the next attempt
};

// Its source, the cache or the worker is away, and may be back.
bool is_worth_waiting(const Task& task, const Error& error) {
  return task.attempt.is_given_up || error.kind == Errc::Unavailable;
}

tl::unexpected<Error> give_up(const Task& task, const Error& last, unsigned tries) {
  const std::string& volume = task.dataset.volume;
  return fail(Errc::Failed,
              last.what + "; tried " + std::to_string(tries) + " times" +
                  (volume.empty() ? "" : " while volume " + volume + " was ready"),
              "check the drives behind it; the next attempt resumes from the copied part");
}

// Any caller may request a VOLUME:PATH that does not exist, so only some of those are kept.
void keep_failure(Activity& activity, const config::Config& config, const std::string& name,
                  std::string why) {
  constexpr std::size_t kMostFailed = 1000;
  activity.failed[name] = std::move(why);
  if (activity.failed.size() <= kMostFailed + config.datasets.size()) return;
  const auto other = std::ranges::find_if(activity.failed, [&](const auto& failure) {
    return failure.first != name && !config.datasets.contains(failure.first);
  });
  if (other != activity.failed.end()) activity.failed.erase(other);
}

}  // namespace

asio::awaitable<void> Attempts::run(TaskPtr task) {
  auto ended = co_await stage_to_the_end(task);
  const std::string& name = task->dataset.name;
  auto& tasks = activity_.tasks;
  task->is_over = true;
  prefetches_.tell_evicted(*task, ended);
  if (task->was_tried) co_await catalog_.refresh();
  prefetches_.release_evicted(catalog_);
  if (const auto mine = tasks.find(name); mine != tasks.end() && mine->second == task) tasks.erase(mine);
  count(activity_.totals, *task, ended);
  const bool is_known = config::find_dataset(context_.config(), name).has_value();
  if (!ended && ended.error().kind != Errc::Cancelled && !tasks.contains(name) && is_known) {
    keep_failure(activity_, context_.config(), name, ended.error().message());
  }
  task->ended = std::move(ended);
  task->changed.notify();
  if (task->users > 0) co_return;
  std::vector<TaskPtr> alone{task};
  co_await end_holds(leases_, std::move(alone));  // no request waits for its result
}

void Attempts::may_begin() {
  may_begin_ = true;
  for (const auto& [name, task] : activity_.tasks) task->changed.notify();
}

bool Attempts::is_live(const Task& task) const {
  return task.view.is_possible() && views_.problem_of(task.view.number).empty();
}

Slot Attempts::slot_for(const Task& task, const SourcePlace& source) const {
  const Demand demand = task.demand();
  Slot slot{source.drive, SlotKind::Full, demand.user};
  if (demand.max_rate != 0) slot.kind = SlotKind::Limited;
  if (demand.is_prefetch) slot.kind = demand.by ? SlotKind::Deadline : SlotKind::Background;
  slot.is_live = is_live(task) && !demand.is_prefetch;
  slot.is_read = slot.is_live && task.view.is_read;
  return slot;
}

void Attempts::renew_slot(Task& task) {
  const auto source = context_.find_source(task.dataset);
  if (task.slot && source) turns_.take(task, slot_for(task, *source));
  turns_.set_priorities();
}

// Waits while the source or the cache is away, as long as a request waits. A source that fails although it
// looks healthy gets a limited number of attempts.
asio::awaitable<Outcome> Attempts::stage_to_the_end(TaskPtr task) {
  Retries retries{0, context_.timings.retry};
  if (!may_begin_)
    task->progress["reason"] = "the daemon looks for the leases and live views of the one before it";
  while (!may_begin_ && !task->is_cancelled) co_await task->changed.wait();
  task->progress.erase("reason");
  co_await wait_while_settling(context_, task);
  for (;;) {
    auto staged = co_await attempt_in_turn(task);
    const bool goes_on =
        !task->is_cancelled && task->attempt.begins_again && (!staged || is_redefined(context_, *task));
    // Otherwise the next task takes the turn, and the job that reads this view waits for its whole copy.
    if (!goes_on || !is_live(*task)) turns_.give_back(*task);
    if (task->is_cancelled) co_return task->cancelled();
    if (goes_on) continue;
    if (!staged && task->attempt.doubt) {
      const bool passed = co_await doubt_passed(context_, task);
      if (passed) continue;
      co_return refuse_doubtful(*task);
    }
    if (const auto blocked_by = staged ? get_strings(*staged, "blocked_by") : std::vector<std::string>();
        !blocked_by.empty()) {
      co_await prefetches_.end(task, blocked_by);
      continue;
    }
    if (staged || !is_worth_waiting(*task, staged.error())) co_return staged;
    const Error why = std::move(staged.error());
    if (task->attempt.has_moved) retries = {0, context_.timings.retry};
    const bool has_begun = task->attempt.has_begun || task->attempt.is_given_up;
    const bool is_away = !can_be_read(*task);
    if (has_begun && !is_away && ++retries.tries >= context_.timings.tries)
      co_return give_up(*task, why, retries.tries);
    if (has_begun) {
      log::warning(doing(*task) + " stalled: " + why.what + "; it resumes automatically");
      ++activity_.totals.stalls;
    }
    const auto source = context_.find_source(task->dataset);
    const Duration look = source && source->is_at_peers ? context_.timings.peers : context_.timings.look;
    auto from_peers = co_await wait_after(task, why, is_away ? look : retries.pause);
    if (from_peers) co_return std::move(*from_peers);
    if (task->is_cancelled) co_return task->cancelled();
    if (!is_away) retries.pause = std::min(retries.pause * 2, kLongestRetry);
    if (has_begun) log::info(doing(*task) + " goes on");
  }
}

// At least for `pause`. A result: peers had what its source would have given.
asio::awaitable<std::optional<Outcome>> Attempts::wait_after(TaskPtr task, Error why, Duration pause) {
  co_await wait_for_source(context_, task, why, pause, context_.clock.steady());
  while (can_ask_peers(*task)) {
    auto from_peers = co_await attempt_from_peers(task);
    if (from_peers) co_return std::move(from_peers);
    const SteadyTime again = context_.clock.steady() + context_.timings.peers;
    co_await wait_for_source(context_, task, why, context_.timings.look, again);
  }
  const auto source = context_.find_source(task->dataset);
  if (source || source.error().kind != Errc::Unavailable) co_return std::nullopt;
  co_await wait_for_source(context_, task, source.error(), context_.timings.look);
  co_return std::nullopt;
}

bool Attempts::can_be_read(const Task& task) const {
  const auto source = context_.find_source(task.dataset);
  return !task.attempt.is_given_up && !task.attempt.saw_outage && source && !source->is_at_peers;
}

bool Attempts::must_wait(const Task& task) const {
  const auto source = context_.find_source(task.dataset);
  return source && !turns_.is_free(slot_for(task, *source));
}

// A cached dataset needs no turn, because another copy may take hours. A prefetch learns immediately whether
// there is space for it.
bool Attempts::looks_first(const Task& task) const {
  if (task.demand().is_prefetch) return !task.has_room && must_wait(task);
  const auto names = catalog_.names();
  return (must_wait(task) || turns_.has_background()) && names &&
         std::ranges::find(*names, task.dataset.name) != names->end();
}

bool Attempts::may_go_on(const Task& task) const {
  const auto source = context_.find_source(task.dataset);
  return source && turns_.may_go_on(task, slot_for(task, *source));
}

asio::awaitable<Outcome> Attempts::attempt_in_turn(TaskPtr task) {
  if (may_go_on(*task)) {
    auto staged = co_await attempt(task, false);
    co_return staged;
  }
  turns_.give_back(*task);
  if (looks_first(*task)) {
    auto looked = co_await attempt(task, true);
    const bool is_refused = !looked && looked.error().kind == Errc::NoSpace &&
                            task->attempt.demand.is_prefetch && !task->attempt.begins_again;
    if (is_reserved(looked)) {
      prefetches_.note_room(*task, *looked);
    } else if (looked || is_refused) {
      co_return looked;
    }
  }
  if (must_wait(*task)) task->show_queued();
  Turns::Wanted wanted = [this, task]() -> std::optional<Slot> {
    const auto source = context_.find_source(task->dataset);
    if (!source) return std::nullopt;
    return slot_for(*task, *source);
  };
  co_await turns_.wait_for(task, std::move(wanted));
  auto staged = co_await attempt(task, false);
  co_return staged;
}

asio::awaitable<Outcome> Attempts::attempt(TaskPtr task, bool only_cached) {
  if (task->is_cancelled) co_return fail(Errc::Cancelled, "it was cancelled");
  task->attempt = {};
  task->attempt.begun = task->attempt.last_moved = context_.clock.steady();
  auto dataset = config::find_dataset(context_.config(), task->dataset.name);
  if (!dataset) co_return dataset.take_error();
  task->dataset = std::move(*dataset);
  if (activity_.evicting.contains(task->dataset.name)) co_return being_evicted(task->dataset.name);
  const auto source = context_.find_source(task->dataset);
  if (!source && source.error().kind != Errc::Unavailable) co_return fail_with(source.error(), doing(*task));
  if (!source) co_return source.take_error();
  task->was_tried = true;
  task->state.reset();
  if (source->is_exchanged && !source->device.empty() && !source->doubt) task->state = *source;
  if (source->doubt && !task->allow_dirty) {
    task->attempt.doubt = source->doubt;
    only_cached = true;  // cached data was copied before the other host started to write
  } else if (!only_cached) {
    turns_.take(*task, slot_for(*task, *source));
  }
  std::optional<workers::ConcurrencyLimiter::Pass> pass;
  if (only_cached) {
    auto& looks =
        looks_.try_emplace(source->drive, context_.executor, kMostLooks, kLongestLook).first->second;
    auto entered = co_await looks.enter();
    pass.emplace(std::move(entered));
  }
  co_await leases_.written();  // the copies of requests that have ended may make room
  if (task->is_cancelled) co_return task->cancelled();
  task->attempt.requests = activity_.requests;
  auto call = call_to_stage(task, *source, only_cached);
  const workers::Cancellation cancellation = task->attempt.cancellation;
  task->away.reset();  // unless this attempt fails too
  auto staged = co_await context_.runner.run(std::move(call), cancellation);
  task->attempt.worker = 0;
  co_return staged;
}

void Attempts::config_changed() {
  std::erase_if(activity_.failed,
                [&](const auto& one) { return !config::find_dataset(context_.config(), one.first); });
  turns_.set_priorities();
  for (const auto& [name, task] : activity_.tasks) {
    if (task->attempt.worker == 0 || !is_redefined(context_, *task)) continue;
    log::info("staging " + printable(name) + " begins again: its configuration has changed");
    task->begin_again();
  }
}

}  // namespace spark::datasets
