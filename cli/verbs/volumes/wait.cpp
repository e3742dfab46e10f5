#include <map>

#include "base/text.hpp"
#include "cli/job.hpp"
#include "cli/say.hpp"
#include "cli/status.hpp"
#include "cli/verbs/volumes/verbs.hpp"
#include "cli/view/screens.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

constexpr Duration kPoll{1'000};

struct WaitOptions {
  std::vector<std::string> volumes;
  std::string job;  // empty: volumes are waited for
  std::optional<Duration> timeout;
  bool as_json = false;
};

// The last sentence about each volume, and with an empty name about the daemon.
using Said = std::map<std::string, std::string>;

void tell_change(Context& context, Said& said, const std::string& about, const std::string& sentence) {
  if (std::exchange(said[about], sentence) != sentence) tell(context, sentence);
}

// The names that are not ready yet.
Result<std::vector<std::string>> look(Context& context, const std::vector<std::string>& names, Said& said) {
  const auto status = ask_volumes(context, names);
  if (!status && status.error().kind == Errc::Unavailable) {
    tell_change(context, said, "", "spark-stage: " + status.error().what + " - still trying");
    return names;
  }
  if (!status) return status.take_error();
  std::vector<std::string> waiting;
  for (const std::string& name : names) {
    const auto volume = volume_of(*status, name);
    if (!volume) return volume.take_error();
    const std::string state = get_text(*volume, "state");
    const std::string words = volume_in_words(*volume);
    // Without the time of a next attempt, one is in progress, as after `volumes up`.
    const bool is_final = state == "refused" && get_string(*volume, "next_attempt");
    if (is_final) return fail(Errc::Refused, words);
    tell_change(context, said, name, words);
    if (state != "ready") waiting.push_back(name);
  }
  return waiting;
}

Result<std::optional<Duration>> parse_timeout(const std::string& text) {
  return parse_optional_duration(text, "never");
}

Result<json::object> wait_for(Context& context, const std::vector<std::string>& volumes,
                              std::optional<Duration> timeout) {
  context.catch_interrupts();
  Said said;
  const SteadyTime begin = context.timer.steady();
  for (;;) {
    const auto waiting = look(context, volumes, said);
    if (!waiting) return waiting.take_error();
    if (waiting->empty()) return ask_volumes(context, volumes);
    if (context.stop) return fail(Errc::Cancelled, "interrupted while waiting for " + join(*waiting, ", "));
    const auto waited = context.timer.steady() - begin;
    if (timeout && waited >= *timeout) {
      return fail(Errc::TimedOut,
                  "not ready after " + format_duration(*timeout) + ": " + join(*waiting, ", "),
                  "see `spark-stage status`");
    }
    const auto left = timeout ? std::chrono::ceil<Duration>(*timeout - waited) : kPoll;
    context.timer.sleep(std::min(kPoll, left));
  }
}

Result<json::object> wait_for(Context& context, const std::string& job, std::optional<Duration> timeout) {
  ProgressView view(context.err, context.terminal, context.timer);
  const auto result = wait_for_job(context, job, timeout, view);
  if (!result) return result.take_error();
  view.clear();
  tell(context, "job " + printable(job) + ": done");
  return *result;
}

Result<int> wait(Context& context, const WaitOptions& options) {
  if (options.job.empty() == options.volumes.empty()) {
    return fail(Errc::Invalid, "name volumes, or one job with --job, but not both",
                "for example: `spark-stage wait datasets`, `spark-stage wait --job 7`");
  }
  const auto ended = options.job.empty() ? wait_for(context, options.volumes, options.timeout)
                                         : wait_for(context, options.job, options.timeout);
  if (!ended) return ended.take_error();
  return options.as_json ? show_json(context, *ended) : 0;
}

}  // namespace

void add_wait(App& app) {
  const auto options = std::make_shared<WaitOptions>();
  Verb verb = app.verb("wait", "wait until volumes are ready or a job ends",
                       "  spark-stage wait datasets models --timeout 5m\n"
                       "  ExecStartPre=/usr/bin/spark-stage wait datasets     in a job's unit\n"
                       "  spark-stage wait --job 7          one that `stage --detach` started\n\n"
                       "A unit with such a line needs TimeoutStartSec=infinity: by default, systemd\n"
                       "ends a start after 90 s, and the wait with it.",
                       [options](Context& context) { return wait(context, *options); });
  verb.optional_argument("VOLUME", options->volumes, "volumes of the config");
  verb.option("--job", "JOB", options->job, "a job instead, by its number: `spark-stage jobs` has it");
  verb.parsed("--timeout", "TIME", options->timeout, parse_timeout, "give up after that: 90s, 5m (never)");
  verb.flag("--json", options->as_json, "the volumes' states then, or the job's result");
}

}  // namespace spark::cli
