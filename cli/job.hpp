// Long work in the daemon: started, followed to its end over restarts of the daemon, cancelled by ^C.
#pragma once

#include <optional>

#include "base/json.hpp"
#include "base/units.hpp"
#include "cli/context.hpp"
#include "cli/view/progress_view.hpp"

namespace spark::cli {

struct Job {
  Request request;      // the request that started it; idempotent with what the answer has as "accepted"
  json::object answer;  // the daemon's description of the job
  std::string id;
  std::string key;  // the id, but never of another job after a restart of the daemon
};

Result<Job> start_job(Context& context, const Request& request);

// The job's RESULT (docs/api.md). When the connection breaks, the same job is followed again once the daemon
// answers: Unavailable if it does not after a minute. Only a restarted daemon, which does not know the job,
// gets the request again, for what was accepted. Cancelled: the stop flag was set, and the job was told to
// stop.
Result<json::object> follow_job(Context& context, Job job, ProgressView& view);

// Waits for a job of any client, until it ends or `timeout` has passed; the job continues if the wait ends.
// Returns its RESULT or its error. NotFound: there is none. TimedOut, Cancelled by the stop flag;
// Unavailable: the daemon did not answer for a minute, or was restarted and does not know it.
Result<json::object> wait_for_job(Context& context, const std::string& id, std::optional<Duration> timeout,
                                  ProgressView& view);

// For a prefetch: waits until its space is reserved, or until it waits for its source. Returns the error of a
// failed one. A job with unreadable events continues in the background.
Result<> wait_until_accepted(Context& context, const Job& job, ProgressView& view);

Result<json::object> run_job(Context& context, const Request& request, ProgressView& view);
// With a view of its own, which stays where the job failed.
Result<json::object> run_job(Context& context, const Request& request);

}  // namespace spark::cli
