// Shared by `stage`, `prefetch` and `run`: their options, requesting datasets, and reporting the result.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/units.hpp"
#include "cli/command_line/verb.hpp"
#include "cli/context.hpp"
#include "cli/job.hpp"

namespace spark::cli {

struct StageOptions {
  std::vector<std::string> datasets;
  std::optional<Duration> time;  // a lease by time
  json::value hold;              // a lease by holder, as the API takes it: true is this process; null: none
  Bytes max_rate = 0;            // bytes per second; 0: no limit
  bool accept_source = false;    // also if it is empty, or on another file system than before
  bool allow_dirty = false;      // also from a volume that another host writes
  std::optional<Duration> wait;  // for a source that is away; none: not at all
  bool offline = false;          // the newest copy serves while the source is away
  bool now = false;              // before it is complete
  bool prefetch = false;         // for a job to come
  std::optional<WallTime> by;    // when a prefetch has to be there; none: whenever nothing else is copied
};

// How long a lease lasts, as the daemon takes it: more than no time, and at most ten years.
Result<Duration> parse_lease(const std::string& text);

// The options about sources that `stage` and `run` have alike. `now`: the help of --now.
void add_source_options(Verb& verb, StageOptions& options, const std::string& now);

Request stage_request(const StageOptions& options);

// Tells the job's number, and how to follow and end it.
void tell_detached(Context& context, const Job& job, bool as_json);
// Starts a job, tells that, and returns the exit status.
Result<int> start_detached(Context& context, const Request& request, bool as_json);

// Stages and waits. The RESULT of `stage`, after a line for each dataset on stderr.
Result<json::object> stage_and_tell(Context& context, const StageOptions& options);

struct StagedDataset {
  std::string name, path;
  std::string lease;  // empty if none was given
  std::string env{};  // the dataset's own variable; empty: it has none
  // Of a model that programs can load as from a cache of Hugging Face: that cache, and the model's folder in
  // it. Empty: they can't.
  std::string hub_cache{}, hub_folder{};
};

// In the order of `datasets`, under the names they were asked for. Failed if one has no path.
Result<std::vector<StagedDataset>> staged_datasets(const json::object& result,
                                                   const std::vector<std::string>& datasets);

}  // namespace spark::cli
