// Copies that are there: verified, scrubbed, evicted.
#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/datasets/stager.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"

namespace spark::datasets {
namespace {

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

// What a person can do about a staging that is under way. Job ids are numbers: curl asks for each of {7,8}.
std::string how_to_end(const std::vector<std::string>& jobs) {
  const std::string wait = "wait for it, or press ^C in the `spark-stage stage` or `run` that waits for it";
  if (jobs.empty()) return wait;
  const std::string ids = jobs.size() == 1 ? jobs.front() : "{" + join(jobs, ",") + "}";
  return wait + "; one that was detached: `curl -X DELETE --unix-socket /run/spark-stage/api.sock " +
         "localhost/v1/jobs/" + ids + "`";
}

}  // namespace

Result<std::vector<std::string>> Stager::known() const {
  const auto catalog = known_catalog();
  if (!catalog) return catalog.take_error();
  std::vector<std::string> names;
  for (const json::value& row : *get_array(**catalog, "datasets")) {
    names.push_back(get_string(row.as_object(), "name").value_or(""));
  }
  return names;
}

// What has a copy that can be read back.
std::vector<std::string> Stager::readable() const {
  std::vector<std::string> names;
  for (const json::value& value : *get_array(**catalog_, "datasets")) {
    const json::object& row = value.as_object();
    if (get_string(row, "path")) names.push_back(get_string(row, "name").value_or(""));
  }
  return names;
}

Result<> Stager::check_known(const std::string& dataset) const {
  const auto names = known();
  if (!names) return names.take_error();
  if (std::ranges::find(*names, dataset) != names->end()) return {};
  const std::string near = nearest(dataset, *names);
  return fail(Errc::NotFound, "dataset " + printable(dataset) + " is not staged",
              near.empty() ? "`spark-stage ls` shows what is" : "did you mean '" + printable(near) + "'?");
}

Result<std::shared_ptr<Job>> Stager::verify(const std::string& dataset, bool sha256) {
  if (auto known = check_known(dataset); !known) return known.take_error();
  auto job = jobs_.create("verify", {dataset});
  workers::Cancellation cancellation;
  job->on_cancel = [cancellation]() mutable { cancellation.cancel(); };
  launch(executor_, "verify " + dataset, run_verify(job, dataset, sha256, cancellation));
  return job;
}

asio::awaitable<void> Stager::run_verify(std::shared_ptr<Job> job, std::string dataset, bool sha256,
                                         workers::Cancellation cancellation) {
  auto verified = co_await read_back(job, dataset, sha256, workers::Priority::Normal, cancellation);
  job->finish(std::move(verified));
}

asio::awaitable<Stager::Outcome> Stager::read_back(std::shared_ptr<Job> job, std::string dataset, bool sha256,
                                                   workers::Priority priority,
                                                   workers::Cancellation cancellation) {
  workers::Call call;
  call.verb = "verify";
  call.subject = "dataset " + printable(dataset);
  call.request = catalog_request();
  call.request["dataset"] = dataset;
  call.request["sha256"] = sha256;
  call.on_progress = [job, name = printable(dataset)](const json::object& progress) {
    json::object named = progress;
    named["dataset"] = name;
    job->set_progress(std::move(named));
  };
  call.on_start = [priority](pid_t pid) {
    if (const auto set = workers::set_priority(pid, priority); !set) log::survived(set.error());
  };
  auto read = co_await runner_.run(std::move(call), cancellation);
  if (read) {
    ++totals_.found_good;
  } else if (read.error().kind == Errc::Mismatch) {
    ++totals_.found_damaged;
    log::error(read.error().message());
  } else if (read.error().kind != Errc::Cancelled) {
    ++totals_.not_readable;
  }
  co_await refresh();  // a copy that was found damaged is not ready any more
  co_return read;
}

Result<std::shared_ptr<Job>> Stager::scrub(std::vector<std::string> datasets) {
  const auto all = known();
  if (!all) return all.take_error();
  if (datasets.empty()) datasets = readable();
  const std::set<std::string> names(all->begin(), all->end());
  for (const std::string& dataset : datasets) {
    if (!names.contains(dataset)) return fail(check_known(dataset).error());
  }
  auto job = jobs_.create("scrub", datasets);
  workers::Cancellation cancellation;
  job->on_cancel = [cancellation]() mutable { cancellation.cancel(); };
  launch(executor_, "scrub", run_scrub(job, std::move(datasets), cancellation));
  return job;
}

asio::awaitable<void> Stager::run_scrub(std::shared_ptr<Job> job, std::vector<std::string> datasets,
                                        workers::Cancellation cancellation) {
  json::array verdicts;
  for (const std::string& dataset : datasets) {
    const auto read = co_await read_back(job, dataset, false, workers::Priority::Idle, cancellation);
    if (!read && read.error().kind == Errc::Cancelled) {
      job->finish(fail(read.error()));
      co_return;
    }
    if (!read && read.error().kind != Errc::Mismatch) scrub_tried_[dataset] = clock_.steady();
    verdicts.push_back(verdict(dataset, read));
  }
  json::object result{{"datasets", std::move(verdicts)}};
  job->finish(std::move(result));
}

asio::awaitable<void> Stager::keep_scrubbing() {
  asio::steady_timer timer(executor_);
  for (;;) {
    timer.expires_after(patience_.upkeep);
    const auto [error] = co_await timer.async_wait(kToken);
    if (error) co_return;
    const auto due = tasks_.empty() ? due_for_scrub() : std::nullopt;
    if (!due) continue;
    log::info("scrubbing dataset " + printable(*due) + ": its copy was not read back for long");
    const auto job = scrub({*due});
    while (job && (*job)->is_running()) co_await (*job)->next_change();
  }
}

// The one that was not looked at longest, if that is too long.
std::optional<std::string> Stager::due_for_scrub() const {
  const auto& interval = config_().cache.scrub;
  if (!interval || !catalog_ || !*catalog_) return std::nullopt;
  const WallTime too_old = clock_.wall() - *interval;
  std::int64_t oldest = std::chrono::duration_cast<std::chrono::seconds>(too_old.time_since_epoch()).count();
  std::optional<std::string> due;
  for (const json::value& value : *get_array(**catalog_, "datasets")) {
    const json::object& row = value.as_object();
    const std::string name = get_string(row, "name").value_or("");
    const std::int64_t good_at = get_int(row, "good_at_s").value_or(oldest + 1);
    const auto tried = scrub_tried_.find(name);
    const bool just_tried =
        tried != scrub_tried_.end() && clock_.steady() - tried->second < patience_.scrub_again;
    if (good_at > oldest || just_tried || evicting_.contains(name)) continue;
    if (get_string(row, "state") != "ready") continue;  // staged anew at the next request anyway
    oldest = good_at;
    due = name;
  }
  return due;
}

Result<std::shared_ptr<Job>> Stager::evict(const std::string& dataset) {
  if (wanted_.contains(dataset) || tasks_.contains(dataset)) {
    return fail(Errc::Refused, "dataset " + printable(dataset) + " is being staged",
                how_to_end(jobs_that_stage(dataset)));
  }
  // What a staging left that failed or was interrupted has no row: the worker looks for it.
  const bool may_have_rest = failed_.contains(dataset) || config::find_dataset(config_(), dataset);
  if (auto known = check_known(dataset); !known && !(may_have_rest && known.error().kind == Errc::NotFound)) {
    return known.take_error();
  }
  if (const auto held = leases_.of(dataset); !held.empty()) {
    return fail(Errc::Refused, "dataset " + printable(dataset) + " is leased by " + holders_in_words(held),
                "wait for its end, or `spark-stage release " + held.front()->id + "`");
  }
  auto job = jobs_.create("evict", {dataset});
  evicting_.insert(dataset);
  launch(executor_, "evict " + dataset, run_evict(job, dataset));
  return job;
}

asio::awaitable<void> Stager::run_evict(std::shared_ptr<Job> job, std::string dataset) {
  workers::Call call;
  call.verb = "evict";
  call.subject = "dataset " + printable(dataset);
  call.request = catalog_request();
  call.request["dataset"] = dataset;
  auto evicted = co_await runner_.run(std::move(call));
  const bool left_nothing = !evicted && evicted.error().kind == Errc::NotFound && failed_.contains(dataset);
  if (left_nothing) evicted = json::object{{"dataset", dataset}, {"freed_bytes", 0}};
  if (evicted) {
    failed_.erase(dataset);
    ++totals_.evicted_by_request;
    totals_.evicted_by_request_bytes += static_cast<Bytes>(get_int(*evicted, "freed_bytes").value_or(0));
  }
  co_await refresh();
  evicting_.erase(dataset);
  job->finish(std::move(evicted));
}

}  // namespace spark::datasets
