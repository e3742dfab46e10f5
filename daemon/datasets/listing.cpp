#include "daemon/datasets/datasets.hpp"

#include <map>
#include <set>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"

namespace spark::datasets {
namespace {

json::object empty_row(const std::string& name, const char* state) {
  return {{"name", printable(name)},
          {"state", state},
          {"path", nullptr},
          {"bytes", 0},
          {"files", 0},
          {"generation", 0},
          {"copies", json::array{}},
          {"bytes_from", nullptr},
          {"source_generation", nullptr},
          {"outdated", nullptr},
          {"doubtful", false},
          {"leases", json::array{}},
          {"wanted_by", json::array{}},
          {"staged_at", nullptr},
          {"last_used", nullptr},
          {"scrubbed_at", nullptr},
          {"volume_generation", nullptr}};
}

// Whether its volume has been published again since; null if unknown, or if the volume does not publish.
void compare_generations(const Context& context, const std::string& name, json::object& row) {
  const std::int64_t copied = get_int(row, "source_generation").value_or(0);
  row["source_generation"] = copied > 0 ? json::value(copied) : json::value(nullptr);
  row["outdated"] = row["volume_generation"] = nullptr;
  const auto dataset = config::find_dataset(context.config(), name);
  if (!dataset) return;
  const auto source = context.find_source(*dataset);
  if (!source || source->generation == 0) return;
  row["outdated"] = static_cast<std::uint64_t>(copied) < source->generation;
  row["volume_generation"] = source->generation;
}

// The jobs that wait for a dataset.
struct Waiting {
  std::set<std::uint64_t> ids;
  std::set<std::string> scheduler_jobs;  // for messages: "slurm job 7 (alice)"
};

// By dataset: each job is examined once, whatever their number.
std::map<std::string, Waiting> waiting_for(const Jobs& jobs) {
  std::map<std::string, Waiting> waiting;
  for (const auto& job : jobs.all()) {
    if (!job->is_running() || !job->stages()) continue;
    for (const std::string& dataset : job->subjects()) {
      waiting[dataset].ids.insert(job->id());
      if (!job->asker().scheduler_job.empty())
        waiting[dataset].scheduler_jobs.insert(printable(job->asker().holder));
    }
  }
  return waiting;
}

// Newest first.
json::array copies_in(const json::object& row) {
  json::array copies;
  const auto add = [&](const json::object& copy) {
    const json::value *generation = copy.if_contains("generation"), *path = copy.if_contains("path");
    if (generation == nullptr || path == nullptr || path->is_null()) return;
    copies.push_back(json::object{{"generation", *generation}, {"path", *path}});
  };
  add(row);
  for (const json::object& one : objects_in(row, "older")) add(one);
  return copies;
}

// The totals are those of the walk. A row with an earlier copy is that one's.
void show_live(json::object& row, const json::object& progress, const std::string& folder) {
  const auto number = [&](const char* key) { return get_int(progress, key).value_or(0); };
  const json::object live{{"path", folder},
                          {"bytes", number("bytes_total")},
                          {"files", number("files_total")},
                          {"bytes_here", number("bytes_done")}};
  if (!row["path"].is_null()) {
    row["live"] = live;
    return;
  }
  for (const auto& [key, value] : live) row[key] = value;
}

}  // namespace

Result<json::object> list(const Context& context, const Activity& activity, const Catalog& known,
                          const Leases& leases, const Jobs& jobs, const live::Views& views) {
  const auto catalog = known.known();
  if (!catalog) return catalog.take_error();

  std::map<std::string, json::object> rows;
  for (const auto& [name, dataset] : context.config().datasets) rows[name] = empty_row(name, "absent");
  for (json::object row : objects_in(**catalog, "datasets")) {
    const std::string name = get_text(row, "name");
    row["name"] = printable(name);
    row.erase("good_at_s");
    row.erase("definition");
    row["copies"] = copies_in(row);
    row.erase("older");
    compare_generations(context, name, row);
    if (activity.evicting.contains(name)) row["state"] = "evicting";
    row["leases"] = row["wanted_by"] = json::array{};
    rows[name] = std::move(row);
  }
  // Adds stagings in progress and failures, for datasets without a ready copy.
  const auto not_ready = [&](const std::string& name, const std::string& state) {
    if (!rows.contains(name)) rows[name] = empty_row(name, "absent");
    // A damaged copy does not count as a copy, nor do the remains of an evicted one.
    const json::value& now = rows[name]["state"];
    if (now == "absent" || now == "failed" || now == "evicting") rows[name]["state"] = state;
  };
  for (const auto& [name, why] : activity.failed) {
    not_ready(name, "failed");
    rows[name]["reason"] = why;
  }
  for (const auto& [name, task] : activity.tasks) {
    const std::string phase = get_string(task->progress, "phase").value_or("queued");
    const bool named = phase == "queued" || phase == "stalled" || phase == "flushing";
    const TaskView& view = task->view;
    const std::string folder = views.folder_of(view.number);
    const bool is_live = !folder.empty() && phase != "stalled";
    not_ready(name, is_live ? "live" : named ? phase : "copying");
    if (!folder.empty()) show_live(rows[name], task->progress, folder);
    if (phase == "queued" && !folder.empty()) rows[name]["reason"] = "its copying waits for its turn";
    if (const std::string failed = views.reason_of(view.number); !failed.empty())
      rows[name]["reason"] = failed;
    else if (activity.wanted_now.contains(name) && !view.none.empty())
      rows[name]["reason"] = "it is staged first, as it can't be read before it is complete: " + view.none;
    if (const auto reason = get_string(task->progress, "reason")) rows[name]["reason"] = *reason;
    rows[name]["progress"] = task->progress;
  }
  for (const auto& [id, lease] : leases.all()) {
    if (!rows.contains(lease.dataset)) rows[lease.dataset] = empty_row(lease.dataset, "absent");
    rows[lease.dataset]["leases"].as_array().push_back(show(lease));
  }
  for (const auto& [name, waiting] : waiting_for(jobs)) {
    if (rows.contains(name)) rows[name]["wanted_by"] = json::value_from(waiting.scheduler_jobs);
  }

  json::array datasets;
  for (auto& [name, row] : rows) datasets.push_back(std::move(row));
  return json::object{{"datasets", std::move(datasets)}};
}

json::array stages(const Activity& activity, const Jobs& jobs) {
  auto waiting = waiting_for(jobs);
  json::array stages;
  for (const auto& [name, task] : activity.tasks) {
    json::object stage = task->progress;
    json::array& ids = stage["jobs"].emplace_array();
    for (const std::uint64_t id : waiting[name].ids) ids.emplace_back(std::to_string(id));
    stage["wanted_by"] = json::value_from(waiting[name].scheduler_jobs);
    stages.push_back(std::move(stage));
  }
  return stages;
}

}  // namespace spark::datasets
