// The live views of requests with `now`.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/datasets/requests.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"

namespace spark::datasets {
namespace {

// Whose share of the views it takes. Hooks ask as root.
std::string owner_of(const StageRequest& request) {
  const staging::SchedulerJob& job = request.job;
  if (job.system == staging::kCsi) return "pods of " + printable(job.user.substr(0, job.user.find('/')));
  if (job.is_set()) return "jobs of " + (job.user.empty() ? "unknown users" : printable(job.user));
  return "user " + std::to_string(request.demand.user);
}

// For a later daemon, which has no other record of the request; see demand_in(). "after": the dataset's
// newest copy; leases on it, or on earlier ones, are none of the view's.
json::object demand_of(const StageRequest& request, const Catalog& catalog, const std::string& dataset) {
  std::int64_t after = 0;
  for (const json::object& copy : catalog.generations_of(dataset))
    after = std::max(after, get_int(copy, "generation").value_or(0));
  return {{"max_rate", request.demand.max_rate},
          {"user", request.demand.user},
          {"owner", owner_of(request)},
          {"accept_source", request.accepts_source},
          {"after", after}};
}

StageRequest demand_in(const json::object& noted) {
  StageRequest request;
  request.demand.max_rate = get_count(noted, "max_rate");
  request.demand.user = static_cast<uid_t>(get_int(noted, "user").value_or(0));
  request.accepts_source = get_bool(noted, "accept_source").value_or(false);
  return request;
}

json::object live_result(const Task& task, std::string folder) {
  const auto number = [&](const char* key) { return get_int(task.progress, key).value_or(0); };
  const json::object& walk = task.attempt.walk;
  return {{"state", "live"},
          {"path", std::move(folder)},
          {"served_from", "live"},
          {"generation", 0},
          {"walked_at", rfc3339(*task.attempt.walked_at)},
          {"bytes", number("bytes_total")},
          {"files", number("files_total")},
          {"bytes_here", number("bytes_done")},
          {"seconds", get_double(task.progress, "seconds").value_or(0)},
          {"bytes_per_second", number("bytes_per_second")},
          {"hash", ""},
          {"memfree_drop_bytes", 0},
          {"skipped", json::value_from(get_strings(walk, "skipped"))},
          {"outside_links", get_int(walk, "outside_links").value_or(0)},
          {"warnings", json::value_from(get_strings(walk, "warnings"))},
          {"evicted", json::array{}}};
}

}  // namespace

void KeptViews::want(const TaskPtr& task, const StageRequest& request) {
  if (task->view.number == 0 && !task->dataset.model && task->view.none.empty()) add(task, request);
}

// Of several views that can't be mounted, everybody's copy would begin again for each.
bool KeptViews::replace(const TaskPtr& task, const StageRequest& request) {
  const bool was_read = views_.could_be_read(task->view.number);
  if (!was_read && task->view.has_tried_another) return false;
  add(task, request);
  if (!was_read && !has_failed(*task)) task->view.has_tried_another = true;
  return true;
}

void KeptViews::add(const TaskPtr& task, const StageRequest& request) {
  const std::string& dataset = task->dataset.name;
  task->view.number = views_.add(dataset, demand_of(request, catalog_, dataset));
  const auto phase = get_string(task->progress, "phase");
  const bool is_nearly_complete = phase == "flushing" || phase == "publishing";
  if (!has_failed(*task) && task->attempt.worker != 0 && !task->attempt.begins_again && !is_nearly_complete)
    task->begin_again();
  begin({task, {{"", request.demand}}});
  if (is_nearly_complete) attempts_.renew_slot(*task);
  turns_.wake_all();       // it may wait for a turn that it has now
  task->changed.notify();  // wakes the one that this one replaces
}

bool KeptViews::has_failed(const Task& task) const {
  return !views_.problem_of(task.view.number).empty();
}

// Each attempt has to find first that the view is of the source's set: that may have changed since the one
// before.
std::optional<Outcome> KeptViews::outcome(const Task& task, const StageRequest& request) const {
  const auto phase = get_string(task.progress, "phase");
  const bool may_be_ready = phase == "queued" || phase == "walking";
  if (has_failed(task) && !may_be_ready)
    return fail(
        Errc::Failed,
        "the live view of " + printable(task.dataset.name) + ": " + views_.problem_of(task.view.number),
        "without `now` it is staged first");
  const Attempt& attempt = task.attempt;
  const std::string folder = views_.folder_of(task.view.number);
  const bool is_right = attempt.worker != 0 && !attempt.begins_again && attempt.walked_at;
  if (folder.empty() || !is_right) return std::nullopt;
  json::object live = live_result(task, folder);
  if (attempt.requests < request.number)
    live["warnings"].as_array().emplace_back("it shows the source as of " + rfc3339(*attempt.walked_at) +
                                             "; a request without `now` reads the source again");
  if (std::string failed = views_.reason_of(task.view.number); !failed.empty())
    live["warnings"].as_array().emplace_back(std::move(failed));
  return live;
}

bool KeptViews::is_live(const Task& task, const StageRequest& request) const {
  const auto live = request.is_now(task.dataset.name) ? outcome(task, request) : std::nullopt;
  return live && live->has_value();
}

void KeptViews::use(const Task& task, const std::string& lease, const Demand& demand) {
  const auto found = kept_.find(task.view.number);
  if (found == kept_.end()) return;
  Kept& view = found->second;
  if (const auto again = view.demands.find(lease); again != view.demands.end())
    view.task->demands.remove(again->second);
  view.demands[lease] = demand;
  view.task->demands.add(demand);
  if (auto first = view.demands.extract("")) view.task->demands.remove(first.mapped());
  view.task->view.is_read = true;
}

void KeptViews::changed() {
  for (const auto& [number, view] : kept_) view.task->changed.notify();
}

void KeptViews::begin(Kept view) {
  const TaskPtr task = view.task;
  ++task->users;
  for (const auto& [lease, demand] : view.demands) task->demands.add(demand);
  kept_[task->view.number] = std::move(view);
  launch(context_.executor, "live view of " + task->dataset.name, keep(task->view.number));
}

bool KeptViews::is_used(const Kept& view) const {
  return std::ranges::any_of(view.demands,
                             [&](const auto& one) { return leases_.all().contains(one.first); });
}

void KeptViews::drop_ended(Kept& view) {
  const auto dropped = std::erase_if(view.demands, [&](const auto& one) {
    const bool has_ended = !one.first.empty() && !leases_.all().contains(one.first);
    if (has_ended) view.task->demands.remove(one.second);
    return has_ended;
  });
  if (dropped > 0) view.task->apply_demand();
}

// Beside the requests, which end once the view can be read: the staging goes on as long as a request waits
// for it or a job has the view, and the view stays as long as a job has it.
asio::awaitable<void> KeptViews::keep(std::uint64_t number) {
  Kept& view = kept_.at(number);
  const TaskPtr task = view.task;
  const std::string& dataset = task->dataset.name;
  const auto is_wanted = [&] {
    if (task->view.number != number) return false;
    // One that has failed stays as long as its copy: the next request would begin that again for another. So
    // does one that the worker may just be making.
    const bool is_seen = views_.could_be_read(number) && views_.problem_of(number).empty();
    return is_seen ? activity_.wanted_now.contains(dataset) : task->users > 1;
  };
  while (!task->ended && (is_wanted() || is_used(view))) {
    co_await task->changed.wait();
    drop_ended(view);
  }
  if (task->view.number == number) {
    task->view.number = 0;  // a request that comes now gets another one
    task->view.is_read = false;
    if (!task->ended) attempts_.renew_slot(*task);
  }
  if (!task->ended) {
    co_await views_.end(number);
  } else if (*task->ended) {
    json::object copy = **task->ended;
    co_await end_staging(number, std::move(copy));
  } else {
    std::string reason = task->ended->error().message();
    co_await views_.set_failed(number, std::move(reason));
  }
  for (const auto& [lease, demand] : view.demands) task->demands.remove(demand);
  std::vector<TaskPtr> over = turns_.leave({task});
  co_await end_holds(leases_, std::move(over));
  while (views_.has(number) && is_used(view)) co_await task->changed.wait();
  co_await views_.end(number);
  kept_.erase(number);
}

// The leases of jobs that began before the copy was published become leases on it, if it is the view's: it
// may be of another state of the source.
asio::awaitable<void> KeptViews::end_staging(std::uint64_t number, json::object copy) {
  const auto generation = get_count(copy, "generation");
  std::string path = get_text(copy, "path");
  const bool is_its_copy = co_await views_.show_copy(number, std::move(path), generation);
  if (!is_its_copy) co_return;
  const std::map<std::string, Demand> early = kept_.at(number).demands;
  for (const auto& [id, demand] : early) {
    const auto still = leases_.all().find(id);  // it may have been released meanwhile
    if (still == leases_.all().end() || still->second.is_staged()) continue;
    Lease lease = still->second;
    lease.generation = generation;
    auto granted = co_await leases_.grant(std::move(lease));
    if (!granted) log::survived(granted.error());
  }
}

void KeptViews::resume(const std::vector<live::Views::Earlier>& earlier) {
  for (const live::Views::Earlier& one : earlier) {
    const bool is_newest = std::ranges::none_of(earlier, [&](const live::Views::Earlier& other) {
      return other.dataset == one.dataset && other.number > one.number;
    });
    const auto running = activity_.tasks.find(one.dataset);  // of a request that came sooner
    const TaskPtr there = running == activity_.tasks.end() ? nullptr : running->second;
    Kept view = kept_for(one, is_newest, there);
    const TaskPtr task = view.task;
    task->view.number = one.number;
    task->view.is_read = true;
    begin(std::move(view));
    if (!task->ended && task != there)
      launch(context_.executor, "staging " + one.dataset, attempts_.run(task));
  }
}

// A lease that waits for its dataset is one on the newest view of it. One on a copy that is newer than the
// view may be on the view's: the daemon has ended when that had been published.
KeptViews::Kept KeptViews::kept_for(const live::Views::Earlier& one, bool is_newest, const TaskPtr& there) {
  const StageRequest request = demand_in(one.demand);
  Kept view{nullptr};
  const auto after = get_count(one.demand, "after");
  for (const Lease* lease : leases_.of(one.dataset)) {
    const bool is_its = lease->is_staged() ? lease->generation > after : is_newest;
    if (!lease->is_soft && is_its) view.demands[lease->id] = request.demand;
  }
  auto found = config::find_dataset(context_.config(), one.dataset);
  config::Dataset settings = found ? std::move(*found) : config::Dataset{};
  settings.name = one.dataset;  // one that is not in the configuration any more fails
  const std::string failed = views_.problem_of(one.number);
  const bool goes_on = one.copy.empty() && is_newest && failed.empty();
  if (goes_on && there && !there->is_cancelled) {
    there->accepts_source |= request.accepts_source;
    view.task = there;
    return view;
  }
  if (goes_on) {
    view.task = make_task(context_.executor, activity_, settings, request);
    view.task->demands.remove(request.demand);  // begin() adds those of the view
    return view;
  }
  view.task = std::make_shared<Task>(context_.executor, ++activity_.newest_task, settings);
  const std::string generation = std::filesystem::path(one.copy).filename();
  view.task->ended =
      one.copy.empty()
          ? Outcome(fail(Errc::Failed, failed.empty() ? "it has been staged again since" : failed))
          : json::object{{"path", one.copy}, {"generation", std::strtoll(generation.c_str(), nullptr, 10)}};
  return view;
}

}  // namespace spark::datasets
