#include "cli/verbs/datasets/stage_request.hpp"

#include "base/text.hpp"
#include "cli/say.hpp"
#include "cli/view/screens.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {

Result<Duration> parse_lease(const std::string& text) {
  constexpr std::chrono::hours kLongest{10 * 366 * 24};
  auto time = parse_duration(text);
  if (!time || (*time > Duration::zero() && *time <= kLongest)) return time;
  return fail(Errc::Invalid,
              "'" + printable(text) + (*time > kLongest ? "' is more than ten years" : "' is no time"),
              "for example 12h or 30d");
}

void add_source_options(Verb& verb, StageOptions& options, const std::string& now) {
  verb.parsed("--wait", "TIME", options.wait, parse_duration, "wait that long for a source that is away");
  verb.flag("--offline", options.offline, "take the newest copy here while the source is away");
  verb.flag("--now", options.now, now);
  verb.flag("--accept-source", options.accept_source, "also if it is now empty, or on another file system");
  verb.flag("--allow-dirty", options.allow_dirty, "also from a volume that another host writes");
}

Request stage_request(const StageOptions& options) {
  json::object body{{"datasets", json::value_from(options.datasets)}};
  if (options.time) body["lease_s"] = std::chrono::ceil<std::chrono::seconds>(*options.time).count();
  if (!options.hold.is_null()) body["hold"] = options.hold;
  if (options.max_rate > 0) body["max_rate"] = options.max_rate;
  if (options.accept_source) body["accept_source"] = true;
  if (options.allow_dirty) body["allow_dirty"] = true;
  if (options.wait) body["wait_s"] = std::chrono::ceil<std::chrono::seconds>(*options.wait).count();
  if (options.offline) body["offline"] = true;
  if (options.now) body["now"] = true;
  if (options.prefetch) body["prefetch"] = true;
  if (options.by) body["by"] = rfc3339(*options.by);
  return {"POST", "/v1/stagings", json::serialize(body)};
}

namespace {

// Entries left out, or properties lost: reported once, after the copy.
void warn(ProgressView& view, const json::object& dataset) {
  if (const auto why = get_string(dataset, "unchecked"))
    view.note("spark-stage: warning: the copy was not compared with its source: " + printable(*why));
  if (get_string(dataset, "served_from") == "cache") return;
  const auto skipped = get_printable(dataset, "skipped");
  if (!skipped.empty()) view.note("spark-stage: " + skipped_in_words(skipped));
  for (const std::string& warning : get_printable(dataset, "warnings")) view.note("spark-stage: " + warning);
}

void tell_evicted(ProgressView& view, const json::object& dataset) {
  for (const json::object& one : objects_in(dataset, "evicted")) {
    view.note("  " + printable(get_string(one, "name").value_or("?")) + " was evicted for it, " +
              format_bytes(get_count(one, "bytes")));
  }
}

void tell_kept(ProgressView& view, const json::object& dataset, const std::string& lease) {
  if (const auto late = get_int(dataset, "late_s"))
    view.note("  " + format_left(std::chrono::seconds(*late)) + " later than it was asked for");
  view.note("  kept for its job, and evicted only for data that a job waits for; `spark-stage release " +
            lease + "` ends that");
}

}  // namespace

void tell_detached(Context& context, const Job& job, bool as_json) {
  const std::string id = printable(job.id);
  context.out << (as_json ? pretty(job.answer) : id) << "\n" << std::flush;
  tell(context, "job " + id + " has begun: `spark-stage wait --job " + id +
                    "` follows it, `spark-stage cancel " + id + "` ends it");
}

Result<int> start_detached(Context& context, const Request& request, bool as_json) {
  const auto job = start_job(context, request);
  if (!job) return job.take_error();
  tell_detached(context, *job, as_json);
  return 0;
}

Result<json::object> stage_and_tell(Context& context, const StageOptions& options) {
  ProgressView view(context.err, context.terminal, context.timer);
  auto result = run_job(context, stage_request(options), view);
  if (!result) return result;
  view.clear();
  for (const json::object& dataset : objects_in(*result, "datasets")) {
    view.note(get_shown(dataset, "name") + ": " + staged_in_words(dataset));
    tell_evicted(view, dataset);
    warn(view, dataset);
    const auto id = get_string(dataset, "lease");
    if (id && options.prefetch) tell_kept(view, dataset, printable(*id));
    if (id && options.time) {
      view.note("  leased for " + format_duration(*options.time) + "; `spark-stage release " +
                printable(*id) + "` ends that earlier");
    }
  }
  return result;
}

Result<std::vector<StagedDataset>> staged_datasets(const json::object& result,
                                                   const std::vector<std::string>& datasets) {
  const json::array* rows = get_array(result, "datasets");
  std::vector<StagedDataset> staged;
  for (std::size_t i = 0; i < datasets.size(); ++i) {
    const json::object* row = rows != nullptr && i < rows->size() ? (*rows)[i].if_object() : nullptr;
    const auto path = row != nullptr ? get_string(*row, "path") : std::nullopt;
    if (!path || path->empty()) {
      return fail(Errc::Failed,
                  "spark-staged says it is done, and names no path for '" + printable(datasets[i]) + "'",
                  "are spark-stage and spark-staged of one version?");
    }
    staged.push_back({datasets[i], *path, get_text(*row, "lease"), get_text(*row, "env"),
                      get_text(*row, "hub_cache"), get_text(*row, "hub_folder")});
  }
  return staged;
}

}  // namespace spark::cli
