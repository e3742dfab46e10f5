// Builds a worker's request, and makes the attempt that needs no volume.
#include <algorithm>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/datasets/attempts.hpp"
#include "daemon/log.hpp"
#include "daemon/workers/model_json.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::datasets {
namespace {

// Reserves a part of the time for the steps after the last byte: flushing, publishing.
Duration time_to_copy(Duration left) {
  constexpr int kPercent = 95;
  return std::max(Duration(0), left * kPercent / 100);
}

// Not once everything is copied.
bool needs_source(const json::object& progress) {
  const auto phase = get_string(progress, "phase");
  return phase == "walking" || phase == "copying";
}

}  // namespace

// Its volume is away, and peers may have published its last known state.
bool Attempts::can_ask_peers(const Task& task) const {
  const auto source = context_.find_source(task.dataset);
  const bool is_away = !source && source.error().kind != Errc::NotFound;
  return !task.is_cancelled && is_away && task.state && !context_.config().fleet.listen.empty();
}

asio::awaitable<Outcome> Attempts::attempt_from_peers(TaskPtr task) {
  const SourcePlace place = *task->state;
  task->attempt = {};
  task->attempt.is_from_peers = true;
  task->attempt.requests = activity_.requests;
  task->attempt.last_moved = context_.clock.steady();
  auto call = call_to_stage(task, place, false);
  const workers::Cancellation cancellation = task->attempt.cancellation;
  auto staged = co_await context_.runner.run(std::move(call), cancellation);
  task->attempt.worker = 0;
  const std::string subject = "staging " + printable(task->dataset.name);
  if (staged) {
    log::info(subject + " continued from peers: its volume is away");
  } else if (const std::string why = staged.error().message(); why != task->peers_failed) {
    log::info(subject + ": peers can't stand in for the volume: " + why + "; they are asked again");
    task->peers_failed = why;
  }
  co_return staged;
}

workers::Call Attempts::call_to_stage(const TaskPtr& task, const SourcePlace& source, bool only_cached) {
  workers::Call call{"stage", "dataset " + printable(task->dataset.name), catalog_.request()};
  call.request["dataset"] = task->dataset.name;
  call.request["path"] = source.path;
  call.request["mount"] = source.mount;
  call.request["mounted"] = to_json(source.numbers);
  call.request["volume"] = json::object{{"device", source.device},
                                        {"stamp", static_cast<std::int64_t>(source.stamp)},
                                        {"doubtful", source.doubt && task->allow_dirty},
                                        {"generation", source.generation}};
  if (!source.origin.empty()) call.request["origin"] = source.origin;
  call.request["definition"] = definition_of(task->dataset);
  if (task->accepts_source) call.request["accept_source"] = true;
  const std::uint64_t view = views_.problem_of(task->view.number).empty() ? task->view.number : 0;
  if (view != 0) call.request["view"] = view;
  call.request["exclude"] = json::value_from(task->dataset.exclude);
  call.request["links"] = config::to_string(task->dataset.links);
  if (task->dataset.model) call.request["model"] = workers::to_json(*task->dataset.model);
  const Demand demand = task->attempt.demand = task->demand();
  call.request["max_rate"] = demand.max_rate;
  // Reserves no space for a dataset that is not copied.
  call.request["prefetch"] = demand.is_prefetch && !task->attempt.doubt;
  if (demand.by) {
    const auto left = std::chrono::duration_cast<Duration>(*demand.by - context_.clock.wall());
    call.request["finish_in_ms"] = time_to_copy(left).count();
  }
  const config::FleetSettings& fleet = context_.config().fleet;
  if (!fleet.listen.empty() && source.is_exchanged && !source.doubt) {
    json::object members = workers::to_json(fleet);
    members["nodes"] = json::array(task->nodes.begin(), task->nodes.end());
    members["slow"] = demand.max_rate != 0 || demand.is_prefetch || demand.by.has_value();
    call.request["fleet"] = std::move(members);
  }
  if (!demand.is_prefetch) call.request["prefetching"] = prefetches_.in_progress();
  call.request["task"] = task->number;
  call.request["hold"] = json::object{{"id", task->hold}};
  call.request["in_use"] = in_use();
  call.request["only_cached"] = only_cached;
  call.request["away"] = task->attempt.is_from_peers || source.is_at_peers;
  call.request["at_peers"] = source.is_at_peers;
  call.on_progress = [this, task, view](const json::object& progress) {
    note_progress(*task, view, progress);
  };
  call.on_start = [this, task](pid_t pid) {
    task->attempt.worker = pid;
    turns_.set_priorities();
  };
  return call;
}

// Uses that the catalog may not contain yet.
json::array Attempts::in_use() const {
  json::array all;
  for (const std::string& name : activity_.wanted) {
    all.push_back(json::object{{"dataset", name}, {"generation", 0}});
  }
  for (const auto& [id, lease] : leases_.all()) {
    if (lease.is_soft) continue;  // the catalog has it, and the reservation of space considers it
    all.push_back(json::object{{"dataset", lease.dataset}, {"generation", lease.generation}});
  }
  for (const live::ViewedCopy& copy : views_.copies())
    all.push_back(json::object{{"dataset", copy.dataset}, {"generation", copy.generation}});
  return all;
}

// A user's file system, or link to one, may answer slowly on purpose, or never.
bool Attempts::must_yield(const Task& task, SteadyTime now) const {
  constexpr Bytes kSlow = 1 << 20;  // a second
  constexpr unsigned kMostDoublings = 4;
  const Duration turn = context_.timings.turn * (1 << std::min(task.yields, kMostDoublings));
  const Attempt& attempt = task.attempt;
  if (!task.slot || task.slot->user == 0 || task.slot->kind != SlotKind::Full || attempt.begins_again ||
      !needs_source(task.progress) || now - attempt.begun < turn)
    return false;
  const auto moved = static_cast<Bytes>(std::max<std::int64_t>(0, attempt.last_bytes - attempt.first_bytes));
  const auto seconds =
      static_cast<Bytes>(std::chrono::duration_cast<std::chrono::seconds>(now - attempt.begun).count());
  return moved <= kSlow * seconds && turns_.is_waited_for(*task.slot);
}

// `view`: number of the view that the worker was asked for. The task may have another one by now.
void Attempts::note_progress(Task& task, std::uint64_t view, const json::object& progress) {
  if (const auto why = get_string(progress, "view_failed")) {
    const bool is_known = get_bool(progress, "again").value_or(false) && !views_.reason_of(view).empty();
    if (!is_known) views_.note_failed(view, *why, get_bool(progress, "whole").value_or(false));
    return;
  }
  if (progress.contains("walked")) {
    const std::string none = get_bool(progress, "one_file").value_or(false) ? "it is one file" : "";
    task.attempt.walk = progress;
    if (std::exchange(task.view.none, none) != none) renew_slot(task);
    return;
  }
  if (const auto why = get_string(progress, "no_view")) {
    if (view != task.view.number) return;
    task.view.none = *why;
    log::info("staging " + printable(task.dataset.name) +
              ": it can't be read before it is complete: " + *why);
    renew_slot(task);
    return;
  }
  if (progress.contains("readable")) {
    for (const char* total : {"bytes_total", "files_total"})
      if (progress.contains(total)) task.progress[total] = progress.at(total);
    const Duration walk = std::chrono::duration_cast<Duration>(context_.clock.steady() - task.attempt.begun);
    if (!task.attempt.is_from_peers) task.attempt.walked_at = context_.clock.wall() - walk;
    views_.begin(view);
    return;
  }
  const SteadyTime now = context_.clock.steady();
  Attempt& attempt = task.attempt;
  attempt.note(progress, now);
  if (attempt.is_from_peers && !attempt.has_moved) return;  // still shown as stalled: peers may have nothing
  task.progress = progress;
  task.progress["dataset"] = printable(task.dataset.name);
  prefetches_.note_progress(task);
  if (attempt.is_from_peers) {
    task.note_read(now);
    task.changed.notify();
    return;
  }
  const auto source = context_.find_source(task.dataset);
  if (source && source->doubt && !task.allow_dirty && !attempt.doubt) {
    attempt.doubt = source->doubt;
    attempt.cancellation.cancel();
    return;
  }
  if (source || !task.read_at || !needs_source(progress)) task.note_read(now);
  if (!source) {
    attempt.saw_outage = true;
    attempt.back_since = now;
    turns_.give_back(task);  // other stagings need not wait for that volume
    if (needs_source(progress)) task.show_away(source.error(), now);
  } else if (attempt.saw_outage &&
             now - std::max(attempt.back_since, attempt.last_moved) > context_.timings.stuck) {
    attempt.is_given_up = true;
    task.show_stalled("its reader hangs although the volume is back; it is replaced");
    attempt.cancellation.cancel();
  } else if (must_yield(task, now)) {
    ++task.yields;
    log::warning("staging " + printable(task.dataset.name) + " is slow, so other copies go first");
    turns_.give_back(task);  // also with a live view
    task.begin_again();
  } else if (now - attempt.last_moved > context_.timings.stalled) {
    task.show_stalled("no byte moved for " + format_duration(now - attempt.last_moved));
  }
  task.changed.notify();
}

}  // namespace spark::datasets
