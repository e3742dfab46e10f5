// Long work in the daemon: started, followed to its end over restarts of the daemon, cancelled by ^C.
#pragma once

#include <optional>

#include "base/json.hpp"
#include "base/units.hpp"
#include "cli/context.hpp"
#include "cli/view/progress_view.hpp"

namespace spark::cli {

struct Job {
  Request request;      // what started it; repeating it is harmless
  json::object answer;  // the daemon's description of the job
  std::string id;
};

Result<Job> start_job(Context& context, const Request& request);

// The job's RESULT (docs/api.md). When the connection breaks, the request is repeated until the daemon is
// back: Unavailable if it is not after a minute. Cancelled: the stop flag was set, and the job was told to
// stop.
Result<json::object> follow_job(Context& context, Job job, ProgressView& view);

// One that anybody started, until it ends or `timeout` has passed; it goes on whatever becomes of the wait.
// Its RESULT or its error. NotFound: there is none. TimedOut, Cancelled by the stop flag; Unavailable: the
// daemon went away, and a restarted one does not know it.
Result<json::object> wait_for_job(Context& context, const std::string& id, std::optional<Duration> timeout,
                                  ProgressView& view);

// Of a prefetch: until its room is its own, or is waited for with its source; the error of one that has ended
// with one. A job whose events can't be read goes on by itself.
Result<> wait_until_accepted(Context& context, const Job& job, ProgressView& view);

Result<json::object> run_job(Context& context, const Request& request, ProgressView& view);

}  // namespace spark::cli
