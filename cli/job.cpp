#include "cli/job.hpp"

#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "cli/client/api.hpp"

namespace spark::cli {
namespace {

constexpr Duration kSilence{30'000};   // then the daemon is asked whether the job still runs
constexpr Duration kRetryFor{60'000};  // to reach a daemon that went away
constexpr Duration kRetryEvery{1'000};
constexpr unsigned kTooMany = 429;
constexpr int kMaxLosses = 5;  // a daemon that dies of this job is not retried indefinitely

// How a job ended.
using Outcome = Result<json::object>;

Job job_in(json::object answer, std::string id, Request request = {}) {
  auto key = get_string(answer, "key").value_or(id);
  return {std::move(request), std::move(answer), std::move(id), std::move(key)};
}

std::string path_of(const Job& job) {
  return "/v1/jobs/" + percent_encoded(job.key);
}

// The outcome in an event or a job; no value: not over yet.
std::optional<Outcome> outcome_in(const json::object& object) {
  if (const json::object* error = get_object(object, "error")) {
    return Outcome(fail(error_from_json(*error)));
  }
  const bool done = get_string(object, "event") == "done" || get_string(object, "state") == "done";
  if (!done) return std::nullopt;
  const json::object* result = get_object(object, "result");
  return Outcome(result != nullptr ? *result : json::object());
}

// One connection's worth of events, until `end`. No value: the stream was cut, or silent while the job still
// runs, or it is that late.
std::optional<Outcome> read_events(Context& context, const Job& job, ProgressView& view,
                                   std::optional<SteadyTime> end = {}) {
  std::optional<Outcome> outcome;
  bool is_late = false;
  const auto on_line = [&](std::string_view line) {
    auto event = parse_json_object(line);
    if (!event) {
      outcome = Outcome(fail_with(event.error(), "an event of job " + job.id + " can't be read"));
    } else {
      outcome = outcome_in(*event);
      if (get_string(*event, "event") == "progress") view.update(progress_from_json(*event));
    }
    is_late = end && context.timer.steady() >= *end;
    return !outcome && !is_late;
  };
  const Request request{"GET", path_of(job) + "/events", {}};
  const auto left = end ? std::chrono::ceil<Duration>(*end - context.timer.steady()) : kSilence;
  auto answer = context.client->stream(request, on_line, std::clamp(left, Duration(1), kSilence));
  if (outcome) return outcome;
  if (is_late) return std::nullopt;
  if (!answer) {
    const Errc kind = answer.error().kind;
    if (kind == Errc::Unavailable || kind == Errc::TimedOut) return std::nullopt;
    return Outcome(answer.take_error());
  }
  // The daemon was restarted since it took the job, or this user has too many connections: the job goes on.
  if (answer->status == 404 || answer->status == kTooMany) return std::nullopt;
  return object_of(*answer, request);
}

// Its outcome if it has ended; no value while it runs. NotFound: a restarted daemon does not know it.
Result<std::optional<Outcome>> look_at(Context& context, const Job& job) {
  const auto answer = call(*context.client, {"GET", path_of(job), {}});
  if (!answer) return answer.take_error();
  return outcome_in(*answer);
}

// The same after the connection was lost, once the daemon answers, or it is that late.
Result<std::optional<Outcome>> look_again(Context& context, const Job& job, ProgressView& view,
                                          std::optional<SteadyTime> limit = {}) {
  SteadyTime end = context.timer.steady() + kRetryFor;
  if (limit) end = std::min(end, *limit);
  for (bool is_told = false;; is_told = true) {
    auto found = look_at(context, job);
    const bool is_away =
        !found && (found.error().kind == Errc::Unavailable || found.error().kind == Errc::TimedOut);
    if (is_told && !is_away) view.note("spark-stage: connected again");
    if (!is_away || context.timer.steady() >= end) return found;
    if (!is_told)
      view.note("spark-stage: lost the connection to spark-staged - trying for " +
                format_duration(kRetryFor) + " to reach it again");
    context.timer.sleep(kRetryEvery);
    if (context.stop) return fail(Errc::Cancelled, "interrupted");
  }
}

// Best effort: the daemon may be the one that is gone.
tl::unexpected<Error> cancel(Context& context, const Job& job) {
  const auto cancelled = call(*context.client, {"DELETE", path_of(job), {}});
  const std::string verb = get_text(job.answer, "verb");
  const bool resumes = verb == "stage" || verb == "prefetch" || verb == "stage-out" || verb == "cache-move";
  if (cancelled)
    return fail(Errc::Cancelled, "interrupted",
                resumes ? "finished parts stay, the same command resumes" : "");
  return fail(Errc::Cancelled,
              "interrupted, but job " + job.id + " could not be told: " + cancelled.error().what,
              "`spark-stage status` shows whether it still runs");
}

// For what was accepted alone: what a source has become since may be half of something.
Request repeated(const Job& job) {
  Request request = job.request;
  const json::object* accepted = get_object(job.answer, "accepted");
  if (accepted == nullptr) return request;
  auto body = parse_json_object(request.body.empty() ? "{}" : request.body);
  if (!body) return request;
  for (const auto& member : *accepted) body->insert_or_assign(member.key(), member.value());
  request.body = json::serialize(*body);
  return request;
}

// "job 7 (stage imagenet)"
std::string in_words(const Job& job) {
  return "job " + printable(job.id) + " (" + get_shown(job.answer, "verb") + " " +
         get_shown(job.answer, "subject") + ")";
}

}  // namespace

Result<Job> start_job(Context& context, const Request& request) {
  auto answer = call(*context.client, request);
  if (!answer) return answer.take_error();
  const auto id = get_string(*answer, "id");
  if (!id) {
    return fail(Errc::Failed,
                "spark-staged accepted " + request.method + " " + request.target + " without a job",
                "are spark-stage and spark-staged of one version?");
  }
  return job_in(std::move(*answer), *id, request);
}

Result<json::object> follow_job(Context& context, Job job, ProgressView& view) {
  Result<> repeated_last;  // why the last repeated request was not accepted, if it was not
  for (int losses = 0;;) {
    auto outcome = read_events(context, job, view);
    if (context.stop && !(outcome && outcome->has_value())) return cancel(context, job);
    if (outcome) return std::move(*outcome);
    auto found = look_again(context, job, view);
    if (!found && found.error().kind == Errc::Cancelled) return cancel(context, job);
    if (!found && found.error().kind != Errc::NotFound) return found.take_error();
    if (found && *found) return std::move(**found);
    if (found) {
      context.timer.sleep(kRetryEvery);
      continue;
    }
    if (++losses > kMaxLosses) {
      if (!repeated_last) return repeated_last.take_error();
      return fail(Errc::Unavailable,
                  "spark-staged was restarted " + std::to_string(losses) + " times during this job",
                  "see `journalctl -u spark-staged`");
    }
    auto again = start_job(context, repeated(job));
    if (!again && again.error().kind != Errc::Unavailable) return again.take_error();
    repeated_last = again ? Result<>() : fail(again.error());
    if (again) job = std::move(*again);
    if (!repeated_last) context.timer.sleep(kRetryEvery);  // it may have only begun to work
  }
}

Result<> wait_until_accepted(Context& context, const Job& job, ProgressView& view) {
  std::optional<Outcome> outcome;
  const auto on_line = [&](std::string_view line) {
    const auto event = parse_json_object(line);
    if (!event) return false;
    outcome = outcome_in(*event);
    if (outcome) return false;
    view.update(progress_from_json(*event));
    return !get_bool(*event, "has_room").value_or(false) && get_string(*event, "phase") != "stalled";
  };
  const Request request{"GET", path_of(job) + "/events", {}};
  const auto answer = context.client->stream(request, on_line, kSilence);
  if (context.stop) return cancel(context, job);
  if (outcome && !*outcome) return outcome->take_error();
  return {};
}

Result<json::object> wait_for_job(Context& context, const std::string& id, std::optional<Duration> timeout,
                                  ProgressView& view) {
  context.catch_interrupts();
  std::optional<SteadyTime> end;
  if (timeout) end = context.timer.steady() + *timeout;
  auto answer = call(*context.client, {"GET", "/v1/jobs/" + percent_encoded(id), {}});
  if (!answer) return answer.take_error();
  const Job job = job_in(std::move(*answer), id);
  auto outcome = outcome_in(job.answer);
  while (!outcome) {
    outcome = read_events(context, job, view, end);
    if (outcome && (outcome->has_value() || !context.stop)) break;
    if (context.stop) return fail(Errc::Cancelled, "interrupted; " + in_words(job) + " goes on");
    if (end && context.timer.steady() >= *end) {
      return fail(Errc::TimedOut,
                  in_words(job) + " has not ended after " + format_duration(*timeout) + "; it goes on",
                  "`spark-stage jobs` shows it, `spark-stage cancel " + printable(id) + "` ends it");
    }
    auto found = look_again(context, job, view, end);
    const bool is_over = context.stop || (end && context.timer.steady() >= *end);
    if (!found && !is_over) {
      const bool is_forgotten = found.error().kind == Errc::NotFound;
      return fail(Errc::Unavailable,
                  is_forgotten ? "spark-staged was restarted while waiting for " + in_words(job)
                               : "waiting for " + in_words(job) + ": " + found.error().what,
                  is_forgotten ? "it knows no earlier job: ask for the work again" : found.error().hint);
    }
    if (found) outcome = std::move(*found);
    if (!outcome && !is_over) context.timer.sleep(kRetryEvery);
  }
  return std::move(*outcome);
}

Result<json::object> run_job(Context& context, const Request& request, ProgressView& view) {
  context.catch_interrupts();
  auto job = start_job(context, request);
  if (!job) return job.take_error();
  return follow_job(context, std::move(*job), view);
}

Result<json::object> run_job(Context& context, const Request& request) {
  ProgressView view(context.err, context.terminal, context.timer);
  auto result = run_job(context, request, view);
  if (result) view.clear();
  return result;
}

}  // namespace spark::cli
