#include "daemon/datasets/upkeep.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/timer.hpp"
#include "daemon/token.hpp"
#include "daemon/workers/model_json.hpp"

namespace spark::datasets {
namespace {

// A live view ends a moment after its last lease.
constexpr Duration kUntilClosed{2000};

std::vector<std::string> jobs_that_stage(const Jobs& jobs, const std::string& dataset) {
  std::vector<std::string> ids;
  for (const auto& job : jobs.all()) {
    const bool wants_it = job->is_running() && job->stages() &&
                          std::ranges::find(job->subjects(), dataset) != job->subjects().end();
    if (wants_it) ids.push_back(std::to_string(job->id()));
  }
  return ids;
}

json::object verdict(const std::string& dataset, const Result<json::object>& read) {
  if (read) {
    json::object good = *read;
    good.erase("dataset");
    good["name"] = printable(dataset);
    good["state"] = "ready";
    good["reason"] = nullptr;
    return good;
  }
  const bool damaged = read.error().kind == Errc::Mismatch;
  return {{"name", printable(dataset)},
          {"state", damaged ? json::value("failed") : json::value(nullptr)},
          {"reason", read.error().message()}};
}

std::function<void(const json::object&)> progress_of(const std::shared_ptr<Job>& job,
                                                     const std::string& dataset) {
  return [job, name = printable(dataset)](const json::object& progress) {
    json::object named = progress;
    named["dataset"] = name;
    job->set_progress(std::move(named));
  };
}

Error both_failed(Error copy, const Error& folder) {
  copy.what += "; " + folder.what;
  copy.hint += (copy.hint.empty() || folder.hint.empty() ? "" : "; ") + folder.hint;
  return copy;
}

// Only root may list the folder, as in the status.
Error without_names(const std::string& dataset) {
  return {Errc::Mismatch, "files in the adopted folder of dataset " + printable(dataset) + " are damaged",
          "`journalctl -u spark-staged` names them"};
}

// The next step for a person while a staging is in progress. `leases`: of jobs that read it already.
std::string how_to_end(const std::vector<std::string>& jobs, const std::vector<const Lease*>& leases) {
  if (jobs.empty() && !leases.empty())
    return "wait for it, or for the end of " + holders_in_words(leases) + ": `spark-stage release " +
           leases.front()->id + "`";
  const std::string wait = "wait for it, or press ^C in the `spark-stage stage` or `run` that waits for it";
  return jobs.empty() ? wait : wait + "; one that was detached: `spark-stage cancel " + join(jobs, " ") + "`";
}

}  // namespace

Result<std::vector<std::string>> Upkeep::readable() const {
  const auto catalog = catalog_.known();
  if (!catalog) return catalog.take_error();
  std::vector<std::string> names;
  for (const json::object& row : objects_in(**catalog, "datasets")) {
    if (get_string(row, "path")) names.push_back(get_text(row, "name"));
  }
  return names;
}

Result<std::shared_ptr<Job>> Upkeep::verify(const std::string& dataset, bool sha256, Asker asker) {
  const auto listed = catalog_.check_listed(dataset);
  Verification wanted{dataset, listed.has_value(), sha256};
  if (auto known = config::find_dataset(context_.config(), dataset); known && known->adopt)
    wanted.adopted = std::move(*known);
  const bool is_only_adopted = !listed && listed.error().kind == Errc::NotFound && wanted.adopted;
  if (!listed && !is_only_adopted) return fail(listed.error());
  if (wanted.has_copy && wanted.adopted) {  // of remains there is a row, too
    const auto copies = readable();
    wanted.has_copy = copies && std::ranges::find(*copies, dataset) != copies->end();
  }
  auto job = jobs_.create({"verify", {dataset}, std::move(asker)});
  workers::Cancellation cancellation;
  turns_.make_cancellable(*job, cancellation);
  launch(context_.executor, "verify " + dataset, run_verify(job, std::move(wanted), cancellation));
  return job;
}

asio::awaitable<void> Upkeep::run_verify(std::shared_ptr<Job> job, Verification wanted,
                                         workers::Cancellation cancellation) {
  json::object both;
  std::optional<Error> failed;
  if (wanted.has_copy) {
    auto copy =
        co_await read_back(job, wanted.dataset, wanted.sha256, workers::Priority::Normal, cancellation);
    if (copy) both = std::move(*copy);
    if (!copy) failed = std::move(copy.error());
  }
  // Also if the copy is damaged: peers get the folder, and not that copy.
  if (wanted.adopted && !(failed && failed->kind == Errc::Cancelled)) {
    auto folder = co_await read_adopted(job, std::move(*wanted.adopted), wanted.sha256, cancellation);
    if (folder) {
      if (!wanted.has_copy) both = *folder;
      folder->erase("dataset");
      both["adopted"] = std::move(*folder);
    } else {
      failed = failed ? both_failed(std::move(*failed), folder.error()) : std::move(folder.error());
    }
  }
  if (failed) {
    job->finish(fail(std::move(*failed)));
    co_return;
  }
  both["copy"] = wanted.has_copy;
  job->finish(std::move(both));
}

asio::awaitable<Outcome> Upkeep::read_adopted(std::shared_ptr<Job> job, config::Dataset dataset, bool sha256,
                                              workers::Cancellation cancellation) {
  workers::Call call{"verify-adopted", "the adopted folder of dataset " + printable(dataset.name),
                     catalog_.request()};
  call.request["adopted"] = json::array{workers::adopted_to_json(dataset)};
  call.request["sha256"] = sha256;
  call.on_progress = progress_of(job, dataset.name);
  auto read = co_await turns_.run(job, std::move(call), cancellation);
  if (!read && read.error().kind == Errc::Mismatch) {
    log::error(read.error().message());
    if (job->asker().uid != 0) read = fail(without_names(dataset.name));
  }
  co_return read;
}

asio::awaitable<Outcome> Upkeep::read_back(std::shared_ptr<Job> job, std::string dataset, bool sha256,
                                           workers::Priority priority, workers::Cancellation cancellation) {
  workers::Call call{"verify", "dataset " + printable(dataset), catalog_.request()};
  call.request["dataset"] = dataset;
  call.request["sha256"] = sha256;
  call.on_progress = progress_of(job, dataset);
  call.on_start = [priority](pid_t pid) {
    if (const auto set = workers::set_priority(pid, priority); !set) log::survived(set.error());
  };
  auto read = co_await turns_.run(job, std::move(call), cancellation);
  if (read) {
    ++activity_.totals.found_good;
  } else if (read.error().kind == Errc::Mismatch) {
    ++activity_.totals.found_damaged;
    log::error(read.error().message());
  } else if (read.error().kind != Errc::Cancelled) {
    ++activity_.totals.not_readable;
  }
  co_await catalog_.refresh();  // a copy found damaged is no longer ready
  co_return read;
}

Result<std::shared_ptr<Job>> Upkeep::scrub(std::vector<std::string> datasets, Asker asker) {
  const auto names = catalog_.names();
  if (!names) return names.take_error();
  const std::set<std::string> listed(names->begin(), names->end());
  for (const std::string& dataset : datasets) {
    if (!listed.contains(dataset)) return fail(catalog_.check_listed(dataset).error());
  }
  if (datasets.empty()) datasets = *readable();
  auto job = jobs_.create({"scrub", datasets, std::move(asker)});
  workers::Cancellation cancellation;
  turns_.make_cancellable(*job, cancellation);
  launch(context_.executor, "scrub", run_scrub(job, std::move(datasets), cancellation));
  return job;
}

asio::awaitable<void> Upkeep::run_scrub(std::shared_ptr<Job> job, std::vector<std::string> datasets,
                                        workers::Cancellation cancellation) {
  json::array verdicts;
  for (const std::string& dataset : datasets) {
    const auto read = co_await read_back(job, dataset, false, workers::Priority::Idle, cancellation);
    if (!read && read.error().kind == Errc::Cancelled) {
      job->finish(fail(read.error()));
      co_return;
    }
    if (!read && read.error().kind != Errc::Mismatch) scrub_tried_[dataset] = context_.clock.steady();
    verdicts.push_back(verdict(dataset, read));
  }
  json::object result{{"datasets", std::move(verdicts)}};
  job->finish(std::move(result));
}

asio::awaitable<void> Upkeep::keep_scrubbing() {
  Timer timer(context_.executor);
  const auto unsuccessful = [this] { return activity_.totals.failed + activity_.totals.cancelled; };
  for (;;) {
    timer.expires_after(context_.timings.upkeep);
    if (!co_await timer.wait()) co_return;
    // One that was published and could not be entered in the catalog, as with a full state folder, takes
    // space.
    if (const auto now = unsuccessful(); now != recovered_ && !std::exchange(is_recovering_, true))
      launch(context_.executor, "recovery of the cache", recover(now));
    co_await catalog_.look_again();  // for `status`, which does not wait for a worker
    const bool is_busy = std::ranges::any_of(
        activity_.tasks, [](const auto& task) { return task.second->attempt.worker != 0; });
    const auto due = is_busy ? std::nullopt : due_for_scrub();
    if (!due) continue;
    log::info("scrubbing dataset " + printable(*due) + ": its copy was not read back for long");
    const auto job = scrub({*due});
    while (job && (*job)->is_running()) co_await (*job)->next_change();
  }
}

asio::awaitable<void> Upkeep::recover(std::uint64_t unsuccessful) {
  const auto done = co_await catalog_.recover();
  is_recovering_ = false;
  if (done) recovered_ = unsuccessful;
}

// The dataset that was not checked for the longest time, if a check is due.
std::optional<std::string> Upkeep::due_for_scrub() const {
  const auto& interval = context_.config().cache.scrub;
  const auto catalog = catalog_.known();
  if (!interval || !catalog) return std::nullopt;
  std::int64_t oldest = seconds_since_1970(context_.clock.wall() - *interval);
  std::optional<std::string> due;
  for (const json::object& row : objects_in(**catalog, "datasets")) {
    const std::string name = get_text(row, "name");
    const std::int64_t good_at = get_int(row, "good_at_s").value_or(oldest + 1);
    const auto tried = scrub_tried_.find(name);
    const bool just_tried =
        tried != scrub_tried_.end() && context_.clock.steady() - tried->second < context_.timings.scrub_again;
    if (good_at > oldest || just_tried || activity_.evicting.contains(name)) continue;
    if (get_string(row, "state") != "ready") continue;  // the next request stages it again anyway
    oldest = good_at;
    due = name;
  }
  return due;
}

Result<> Upkeep::check_unused(const std::string& dataset) const {
  if (activity_.wanted.contains(dataset) || activity_.tasks.contains(dataset)) {
    return fail(Errc::Refused, "dataset " + printable(dataset) + " is being staged",
                how_to_end(jobs_that_stage(jobs_, dataset), leases_.of(dataset)));
  }
  if (const auto held = leases_.of(dataset); !held.empty()) {
    return fail(Errc::Refused, "dataset " + printable(dataset) + " is leased by " + holders_in_words(held),
                "wait for its end, or `spark-stage release " + held.front()->id + "`");
  }
  return {};
}

Result<> Upkeep::check_closed(const std::string& dataset) const {
  if (views_.has_copy_of(dataset))
    return fail(Errc::Refused, "a program has files of " + printable(dataset) + " open since it was staged",
                "wait until it has closed them: the process of a job that has ended, or one beside it");
  return {};
}

Result<std::shared_ptr<Job>> Upkeep::evict(const std::string& dataset, Asker asker) {
  // The remains of a failed or interrupted staging have no row: the worker searches for them.
  const bool may_have_rest =
      activity_.failed.contains(dataset) || config::find_dataset(context_.config(), dataset);
  const auto listed = catalog_.check_listed(dataset);
  const bool is_unknown = !listed && !(may_have_rest && listed.error().kind == Errc::NotFound);
  if (const auto unused = check_unused(dataset); !unused || is_unknown)
    return fail(!unused ? unused.error() : listed.error());
  auto job = jobs_.create({"evict", {dataset}, std::move(asker)});
  const workers::Cancellation cancellation;
  turns_.make_cancellable(*job, cancellation);
  launch(context_.executor, "evict " + dataset, run_evict(job, dataset, cancellation));
  return job;
}

void Upkeep::views_changed() {
  for (const auto& patience : closing_) patience->cancel();
}

// Whether it may be evicted is decided when its turn has come, which may be hours later.
asio::awaitable<void> Upkeep::run_evict(std::shared_ptr<Job> job, std::string dataset,
                                        workers::Cancellation cancellation) {
  co_await turns_.take(job);
  job->on_cancel = nullptr;  // a copy of which a part is gone is of no use
  const auto patience = std::make_shared<Timer>(context_.executor);
  patience->expires_after(kUntilClosed);
  closing_.push_back(patience);
  bool is_over = false;
  while (!is_over && !check_closed(dataset)) is_over = co_await patience->wait();
  std::erase(closing_, patience);
  auto unused = check_unused(dataset);
  if (unused) unused = check_closed(dataset);
  if (cancellation.is_asked())
    unused = fail(Errc::Cancelled, "evicting " + printable(dataset) + " was cancelled");
  Outcome evicted = unused.map([] { return json::object(); });
  if (unused) evicted = co_await evict_now(std::move(dataset));
  turns_.give_back(*job);
  job->finish(std::move(evicted));
}

asio::awaitable<Outcome> Upkeep::evict_now(std::string dataset) {
  activity_.evicting.insert(dataset);
  workers::Call call{"evict", "dataset " + printable(dataset), catalog_.request()};
  call.request["dataset"] = dataset;
  co_await leases_.written();  // the worker reads the leases from the catalog
  auto evicted = co_await context_.runner.run(std::move(call));
  const bool left_nothing =
      !evicted && evicted.error().kind == Errc::NotFound && activity_.failed.contains(dataset);
  if (left_nothing) evicted = json::object{{"dataset", dataset}, {"freed_bytes", 0}};
  if (evicted) {
    activity_.failed.erase(dataset);
    ++activity_.totals.evicted_by_request;
    activity_.totals.evicted_by_request_bytes += get_count(*evicted, "freed_bytes");
  }
  co_await catalog_.refresh();
  activity_.evicting.erase(dataset);
  co_return evicted;
}

}  // namespace spark::datasets
