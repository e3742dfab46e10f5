#include <map>

#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/job.hpp"
#include "cli/say.hpp"
#include "cli/verbs/volumes/verbs.hpp"
#include "cli/view/screens.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

constexpr Duration kPoll{1'000};

struct WaitOptions {
  std::vector<std::string> volumes;
  std::string job;  // empty: volumes are waited for
  std::string timeout;
};

using Volumes = std::map<std::string, json::object>;

Volumes volumes_in(const json::object& status) {
  Volumes volumes;
  const json::array* rows = get_array(status, "volumes");
  for (std::size_t i = 0; rows != nullptr && i < rows->size(); ++i) {
    const json::object* row = (*rows)[i].if_object();
    if (const auto name = row != nullptr ? get_string(*row, "name") : std::nullopt) volumes[*name] = *row;
  }
  return volumes;
}

tl::unexpected<Error> unknown(const std::string& name, const Volumes& volumes) {
  std::vector<std::string> known;
  for (const auto& [volume, row] : volumes) known.push_back(volume);
  const std::string near = nearest(name, known);
  return fail(Errc::NotFound, "there is no volume '" + printable(name) + "'",
              near.empty() ? "see 'spark-stage status'" : "did you mean '" + printable(near) + "'?");
}

// Prints what changed since the last look.
class Narrator {
 public:
  explicit Narrator(Context& context) : context_(context) {}
  void say(const std::string& about, const std::string& sentence) {
    if (std::exchange(said_[about], sentence) != sentence) tell(context_, sentence);
  }
  // The last sentence about each, for the end of a wait that failed.
  std::string last(const std::string& about) const {
    const auto found = said_.find(about);
    return found == said_.end() ? std::string() : found->second;
  }

 private:
  Context& context_;
  std::map<std::string, std::string> said_;
};

// The names that are not ready yet.
Result<std::vector<std::string>> look(Context& context, const std::vector<std::string>& names,
                                      Narrator& narrator) {
  const auto status = call(*context.client, {"GET", "/v1/status", {}});
  if (!status && status.error().kind == Errc::Unavailable) {
    narrator.say("", "spark-stage: " + status.error().what + " - still trying");
    return names;
  }
  if (!status) return status.take_error();
  const Volumes volumes = volumes_in(*status);
  std::vector<std::string> waiting;
  for (const std::string& name : names) {
    const auto volume = volumes.find(name);
    if (volume == volumes.end()) return unknown(name, volumes);
    const std::string state = get_string(volume->second, "state").value_or("");
    const std::string words = volume_in_words(volume->second);
    if (state == "refused") return fail(Errc::Refused, words);
    narrator.say(name, words);
    if (state != "ready") waiting.push_back(name);
  }
  return waiting;
}

Result<std::optional<Duration>> timeout_of(const WaitOptions& options) {
  if (options.timeout.empty()) return std::optional<Duration>();
  auto parsed = parse_optional_duration(options.timeout, "never");
  if (!parsed) return fail_with(parsed.error(), "--timeout");
  return parsed;
}

Result<int> wait_for(Context& context, const std::vector<std::string>& volumes,
                     std::optional<Duration> timeout) {
  context.catch_interrupts();
  Narrator narrator(context);
  const SteadyTime begin = context.timer.steady();
  for (;;) {
    const auto waiting = look(context, volumes, narrator);
    if (!waiting) return waiting.take_error();
    if (waiting->empty()) return 0;
    if (context.stop) return fail(Errc::Cancelled, "interrupted while waiting for " + join(*waiting, ", "));
    const auto waited = context.timer.steady() - begin;
    if (timeout && waited >= *timeout) {
      return fail(Errc::TimedOut,
                  "not ready after " + format_duration(*timeout) + ": " + join(*waiting, ", "),
                  "see 'spark-stage status'");
    }
    const auto left = timeout ? std::chrono::ceil<Duration>(*timeout - waited) : kPoll;
    context.timer.sleep(std::min(kPoll, left));
  }
}

Result<int> wait_for(Context& context, const std::string& job, std::optional<Duration> timeout) {
  ProgressView view(context.err, context.terminal, context.timer);
  const auto result = wait_for_job(context, job, timeout, view);
  if (!result) return result.take_error();
  view.clear();
  tell(context, "job " + printable(job) + ": done");
  return 0;
}

Result<int> wait(Context& context, const WaitOptions& options) {
  const auto timeout = timeout_of(options);
  if (!timeout) return timeout.take_error();
  if (options.job.empty() == options.volumes.empty()) {
    return fail(Errc::Invalid, "nothing to wait for was named, or both volumes and a job",
                "for example: 'spark-stage wait datasets', 'spark-stage wait --job 7'");
  }
  if (options.job.empty()) return wait_for(context, options.volumes, *timeout);
  return wait_for(context, options.job, *timeout);
}

}  // namespace

void add_wait(App& app) {
  const auto options = std::make_shared<WaitOptions>();
  Verb verb = app.verb("wait", "until volumes are ready, or a job has ended",
                       "  spark-stage wait datasets models --timeout 5m\n"
                       "  ExecStartPre=/usr/bin/spark-stage wait datasets     in a job's unit\n"
                       "  spark-stage wait --job 7          one that 'stage --detach' started",
                       [options](Context& context) { return wait(context, *options); });
  verb.optional_argument("VOLUME", options->volumes, "volumes of the config");
  verb.option("--job", "JOB", options->job, "a job instead, by its number: 'spark-stage jobs' has it");
  verb.option("--timeout", "TIME", options->timeout, "give up after that: 90s, 5m (never)");
}

}  // namespace spark::cli
