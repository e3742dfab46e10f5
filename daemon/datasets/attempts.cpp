// One dataset, until it is staged or has failed for good: its turn, trouble of its source, its priority.
#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/datasets/stager.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "daemon/workers/priority.hpp"

namespace spark::datasets {
namespace {

constexpr Duration kLongestRetry{60'000};

Bytes bytes_of(const json::object& object, std::string_view key) {
  return static_cast<Bytes>(std::max<std::int64_t>(0, get_int(object, key).value_or(0)));
}

void log_eviction(const Task& task, const json::object& evicted) {
  log::info("dataset " + printable(get_string(evicted, "name").value_or("")) + " (" +
            format_bytes(bytes_of(evicted, "bytes")) + ") was evicted to make room for " +
            printable(task.dataset.name));
}

// A copy of a file system that changes underneath is of no state that it ever had.
tl::unexpected<Error> refuse_doubtful(const Task& task) {
  return fail(
      Errc::Refused,
      "staging " + printable(task.dataset.name) + ": volume " + task.dataset.volume + " is " + task.doubt,
      "let the other host unmount it, then stage again; --allow-dirty copies whatever is read there");
}

}  // namespace

asio::awaitable<void> Stager::run_task(TaskPtr task) {
  auto ended = co_await stage_to_the_end(task);
  const std::string& name = task->dataset.name;
  task->is_over = true;
  if (task->was_tried) co_await refresh();
  if (const auto mine = tasks_.find(name); mine != tasks_.end() && mine->second == task) tasks_.erase(mine);
  count(*task, ended);
  if (!ended && ended.error().kind != Errc::Cancelled && !tasks_.contains(name)) {
    keep_failure(name, ended.error().message());
  }
  task->ended = std::move(ended);
  task->changed.cancel();
  if (task->users > 0) co_return;
  std::vector<TaskPtr> alone{task};
  (void)co_await end_holds(std::move(alone));  // no request is told what has become of it
}

// Anyone may ask for VOLUME:PATHs that are not there: of those only some are kept.
void Stager::keep_failure(const std::string& name, std::string why) {
  constexpr std::size_t kMostFailed = 1000;
  failed_[name] = std::move(why);
  if (failed_.size() <= kMostFailed + config_().datasets.size()) return;
  const auto other = std::ranges::find_if(failed_, [&](const auto& failure) {
    return failure.first != name && !config_().datasets.contains(failure.first);
  });
  if (other != failed_.end()) failed_.erase(other);
}

void Stager::count(const Task& task, const Outcome& ended) {
  if (!ended) {
    ++(ended.error().kind == Errc::Cancelled ? totals_.cancelled : totals_.failed);
    return;
  }
  if (get_string(*ended, "served_from") == "cache") {
    ++totals_.from_cache;
  } else {
    const Bytes taken_over = bytes_of(*ended, "resumed_bytes") + bytes_of(*ended, "unchanged_bytes");
    ++totals_.copied;
    totals_.copied_bytes += bytes_of(*ended, "bytes") - std::min(bytes_of(*ended, "bytes"), taken_over);
    totals_.copied_seconds += get_double(*ended, "seconds").value_or(0);
  }
  const json::array* evicted = get_array(*ended, "evicted");
  for (std::size_t i = 0; evicted != nullptr && i < evicted->size(); ++i) {
    const json::object& one = (*evicted)[i].as_object();
    log_eviction(task, one);
    ++totals_.evicted_for_room;
    totals_.evicted_for_room_bytes += bytes_of(one, "bytes");
  }
}

// The source is in trouble when the worker says so after it had begun to read it. While its volume is away
// that is waited out, however long; a source that fails although all looks well has some tries.
asio::awaitable<Stager::Outcome> Stager::stage_to_the_end(TaskPtr task) {
  const std::string doing = "staging " + printable(task->dataset.name);
  Duration pause = patience_.retry;
  while (!task->is_cancelled && is_settling_(task->dataset)) {
    task->pause.expires_after(patience_.settling);
    co_await task->pause.async_wait(kToken);
  }
  for (unsigned tries = 0;;) {
    auto staged = co_await attempt_in_turn(task);
    give_turn_back(*task);
    if (task->is_cancelled) co_return fail(Errc::Cancelled, doing + " was cancelled");
    if (std::exchange(task->begins_again, false) && (!staged || is_redefined(*task))) {
      co_await wait_to_begin_again(task);
      continue;
    }
    if (!staged && !task->doubt.empty()) {
      const bool passed = co_await doubt_passed(task);
      if (passed) continue;
      co_return refuse_doubtful(*task);
    }
    const bool trouble =
        !staged && (task->is_given_up || (task->has_begun && staged.error().kind == Errc::Unavailable));
    if (!trouble) co_return staged;
    if (task->has_moved) {
      tries = 0;
      pause = patience_.retry;
    }
    const bool is_away = task->is_given_up || task->saw_outage || !find_source_(task->dataset);
    if (!is_away && ++tries >= patience_.tries) {
      co_return fail(
          Errc::Failed,
          staged.error().what + "; tried " + std::to_string(tries) + " times" +
              (task->dataset.volume.empty() ? "" : " while volume " + task->dataset.volume + " was ready"),
          "look at the drives behind it; what is copied stays for the next attempt");
    }
    std::string reason = staged.error().what + "; it goes on by itself";
    log::warning(doing + " stalled: " + reason);
    ++totals_.stalls;
    co_await wait_for_source(task, std::move(reason), is_away ? patience_.look : pause);
    if (task->is_cancelled) co_return fail(Errc::Cancelled, doing + " was cancelled");
    if (!is_away) pause = std::min(pause * 2, kLongestRetry);
    log::info(doing + " goes on");
  }
}

// A new state was published, and the mount of the old one is given up as soon as nobody uses it.
asio::awaitable<bool> Stager::doubt_passed(TaskPtr task) {
  if (!task->doubt_passes) co_return false;
  task->show_stalled("volume " + task->dataset.volume + " is " + task->doubt);
  const SteadyTime end = clock_.steady() + patience_.doubt;
  while (!task->is_cancelled && clock_.steady() < end) {
    const auto source = find_source_(task->dataset);
    if (source && source->doubt.empty()) co_return true;
    if (source && !source->doubt_passes) co_return false;
    task->pause.expires_after(patience_.settling);
    co_await task->pause.async_wait(kToken);
  }
  co_return task->is_cancelled;
}

asio::awaitable<void> Stager::wait_for_source(TaskPtr task, std::string reason, Duration at_least) {
  task->show_stalled(reason);
  task->pause.expires_after(at_least);
  co_await task->pause.async_wait(kToken);
  while (!task->is_cancelled) {
    const auto source = find_source_(task->dataset);
    if (source || source.error().kind == Errc::NotFound) break;  // taken out of the config: waits for nothing
    task->show_stalled(source.error().what + "; it goes on by itself when that is over");
    task->pause.expires_after(patience_.look);
    co_await task->pause.async_wait(kToken);
  }
  task->progress["phase"] = "queued";
  task->progress.erase("reason");
  task->changed.cancel();
}

// What is in the cache needs no turn: another's copy may last for hours.
asio::awaitable<Stager::Outcome> Stager::attempt_in_turn(TaskPtr task) {
  const auto names = known();
  if (must_wait(*task) && names && std::ranges::find(*names, task->dataset.name) != names->end()) {
    auto served = co_await attempt(task, true);
    if (served) co_return served;
    task->progress["phase"] = "queued";
  }
  while (must_wait(*task) && !task->is_cancelled) co_await turn_over_.async_wait(kToken);
  auto staged = co_await attempt(task, false);
  co_return staged;
}

asio::awaitable<Stager::Outcome> Stager::attempt(TaskPtr task, bool only_cached) {
  if (task->is_cancelled) co_return fail(Errc::Cancelled, "it was cancelled");
  task->begin_attempt(clock_.steady());
  auto dataset = config::find_dataset(config_(), task->dataset.name);
  if (!dataset) co_return dataset.take_error();
  task->dataset = std::move(*dataset);
  const auto source = find_source_(task->dataset);
  if (!source) co_return fail_with(source.error(), "staging " + printable(task->dataset.name));
  task->was_tried = true;
  if (!source->doubt.empty() && !task->allow_dirty) co_return co_await serve_or_refuse(task, *source);
  if (!only_cached) take_turn(*task, slot_for(*task, *source));
  auto call = call_to_stage(task, *source);
  call.request["only_cached"] = only_cached;
  const workers::Cancellation cancellation = task->attempt;
  auto staged = co_await runner_.run(std::move(call), cancellation);
  task->worker = 0;
  co_return staged;
}

// What is in the cache was copied before the writer came.
asio::awaitable<Stager::Outcome> Stager::serve_or_refuse(TaskPtr task, SourcePlace source) {
  task->doubt = source.doubt;
  task->doubt_passes = source.doubt_passes;
  auto call = call_to_stage(task, source);
  call.request["only_cached"] = true;
  const workers::Cancellation cancellation = task->attempt;
  auto served = co_await runner_.run(std::move(call), cancellation);
  task->worker = 0;
  co_return served;
}

workers::Call Stager::call_to_stage(const TaskPtr& task, const SourcePlace& source) {
  json::array exclude;
  for (const std::string& pattern : task->dataset.exclude) exclude.emplace_back(pattern);
  workers::Call call;
  call.verb = "stage";
  call.subject = "dataset " + printable(task->dataset.name);
  call.request = catalog_request();
  call.request["dataset"] = task->dataset.name;
  call.request["path"] = source.path;
  call.request["mount"] = source.mount;
  call.request["volume"] = json::object{{"device", source.device},
                                        {"stamp", static_cast<std::int64_t>(source.stamp)},
                                        {"doubtful", !source.doubt.empty() && task->allow_dirty},
                                        {"generation", source.generation}};
  call.request["exclude"] = std::move(exclude);
  call.request["links"] = config::to_string(task->dataset.links);
  call.request["max_rate"] = task->limit = task->loosest_limit();
  call.request["task"] = task->number;
  call.request["hold"] = json::object{{"id", task->hold}};
  call.request["in_use"] = in_use();
  call.on_progress = [this, task](const json::object& progress) { note_progress(*task, progress); };
  call.on_start = [this, task](pid_t pid) {
    task->worker = pid;
    set_priorities();
  };
  return call;
}

void Stager::note_progress(Task& task, const json::object& progress) {
  const SteadyTime now = clock_.steady();
  task.has_begun = true;
  task.progress = progress;
  task.progress["dataset"] = printable(task.dataset.name);
  const std::int64_t bytes = get_int(progress, "bytes_done").value_or(0);
  const bool copies = get_string(progress, "phase") == "copying";
  if (bytes != task.last_bytes || !copies) {
    // What an attempt before finished is there at once, and is no movement.
    if (copies && task.last_bytes > 0) task.has_moved = true;
    task.last_bytes = bytes;
    task.last_moved = now;
    task.saw_outage = false;
  }
  const auto source = find_source_(task.dataset);
  if (source && !source->doubt.empty() && !task.allow_dirty && task.doubt.empty()) {
    task.doubt = source->doubt;
    task.doubt_passes = source->doubt_passes;
    task.attempt.cancel();
    return;
  }
  if (!source) {
    task.saw_outage = true;
    task.back_since = now;
    give_turn_back(task);  // others need not wait for that volume
    task.show_stalled(source.error().what + "; it goes on by itself when that is over");
  } else if (task.saw_outage && now - std::max(task.back_since, task.last_moved) > patience_.stuck) {
    task.is_given_up = true;
    task.show_stalled("its reader hangs although the volume is back; it is replaced");
    task.attempt.cancel();
  } else if (now - task.last_moved > patience_.stalled) {
    task.show_stalled("no byte moved for " + format_duration(now - task.last_moved));
  }
  task.changed.cancel();
}

// What a worker may not know yet from the catalog.
json::array Stager::in_use() const {
  json::array all;
  for (const std::string& name : wanted_) {
    all.push_back(json::object{{"dataset", name}, {"generation", 0}});
  }
  for (const auto& [id, lease] : leases_.all()) {
    all.push_back(json::object{{"dataset", lease.dataset}, {"generation", lease.generation}});
  }
  return all;
}

bool Stager::must_yield() const {
  if (!config_().cache.yield) return false;
  return std::ranges::any_of(leases_.all(),
                             [&](const auto& one) { return !early_leases_.contains(one.first); });
}

void Stager::set_priorities() {
  const auto priority = must_yield() ? workers::Priority::Idle : workers::Priority::Normal;
  for (const auto& [name, task] : tasks_) {
    if (task->worker == 0) continue;
    if (const auto set = workers::set_priority(task->worker, priority); !set) log::survived(set.error());
  }
}

}  // namespace spark::datasets
