// What an output tells about itself.
#include <algorithm>

#include "base/text.hpp"
#include "daemon/config/model.hpp"
#include "daemon/outputs/watch/watched_output.hpp"

namespace spark::outputs {

using config::Complete;

void WatchedOutput::note_facts(const Seen& seen) {
  const LocalCheckpoint* newest = newest_complete(seen.local);
  facts_.latest_local = newest == nullptr ? "" : newest->name;
  facts_.newest_bytes = newest == nullptr ? 0 : newest->bytes;
  if (seen.published) {
    facts_.volume_bytes = seen.volume_bytes;
    const bool is_any = !seen.published->empty();
    facts_.latest_published = is_any ? seen.published->front().name : "";
    facts_.published_mtime_ns = is_any ? seen.published->front().mtime_ns : 0;
  }
  facts_.reason = seen.missing.empty() ? seen.unlisted : seen.missing;
  if (facts_.reason.empty() && !hold_.trouble.empty()) {
    facts_.reason =
        "the job may delete a checkpoint while it is sent, which could not be held by hard links: " +
        hold_.trouble;
  }
  const auto future = std::ranges::find_if(seen.local, &LocalCheckpoint::is_in_future);
  if (facts_.reason.empty()) facts_.reason = cleanup_.trouble();
  if (facts_.reason.empty() && !seen.unreadable.empty()) facts_.reason = seen.unreadable.front().reason;
  if (facts_.reason.empty() && future != seen.local.end()) {
    facts_.reason = "the times of " + printable(future->name) +
                    " are later than this host's clock, which was set back: `timedatectl` shows it";
  }
  const CheckpointPlan plan = plan_checkpoints(settings_, seen, known_.sent());
  facts_.backlog = settings_.complete == Complete::OnRequest ? 0 : plan.backlog;
  facts_.unsent = unsent_of(seen, plan);
  if (seen.missing.empty()) return;
  const std::string unseen = known_.unsent_above(seen.published ? &*seen.published : nullptr);
  if (!unseen.empty())
    facts_.unsent =
        printable(unseen) + " is not on " + settings_.volume + ":" + settings_.to + ": " + seen.missing;
}

std::string WatchedOutput::unsent_of(const Seen& seen, const CheckpointPlan& plan) const {
  if (!seen.misnamed.empty()) {
    return printable(seen.misnamed) +
           " is not sent, as its name is none that `complete: " + rule_of(settings_) + "` takes";
  }
  if (seen.local.empty()) return "";
  // One that may be complete says more than the save in progress above it.
  const auto told = std::ranges::find_if(
      seen.local, [](const auto& one) { return one.is_unproven || one.incomplete.empty(); });
  // So does one whose shards other hosts have sent: they wait for a person.
  const auto awaited = std::ranges::find_if(seen.local, [&](const LocalCheckpoint& one) {
    const BegunCheckpoint* begun = find_named(seen.begun, one.name);
    return one.is_unproven && begun != nullptr && begun->has_others;
  });
  const auto end = seen.local.end();
  const LocalCheckpoint& newest = told != end && told->is_unproven ? *told
                                  : awaited != end                 ? *awaited
                                                                   : seen.local.front();
  const std::string where = " is not on " + settings_.volume + ":" + settings_.to;
  if (!newest.incomplete.empty())
    return printable(newest.name) + where + ", as it is not complete: " + newest.incomplete;
  if (!plan.overtaken_by.empty()) {
    return printable(plan.overtaken) + where + ": " + printable(plan.overtaken_by) +
           " there is of a later step; if the job went back to an earlier one, delete that";
  }
  if (!plan.send) return "";
  const std::string left = printable(plan.send->name) + where;
  const std::string& why = facts_.reason.empty() ? retry_.error : facts_.reason;
  if (!why.empty()) return left + " yet: " + why;
  if (settings_.complete == Complete::OnRequest)
    return left + "; `spark-stage stage-out " + settings_.name + "` sends it";
  return left + " yet; spark-staged sends it" +
         (facts_.is_behind ? ", at full speed: checkpoints are saved faster than they are sent" : "");
}

json::object WatchedOutput::to_json() const {
  const auto shown = [](const std::string& text) { return or_null(printable(text)); };
  json::value published_at = nullptr;
  if (facts_.published_mtime_ns > 0) {
    const auto since =
        std::chrono::duration_cast<WallTime::duration>(std::chrono::nanoseconds(facts_.published_mtime_ns));
    published_at = rfc3339(WallTime(since));
  }
  return {{"name", settings_.name},
          {"path", printable(settings_.path.native())},
          {"destination", printable(settings_.volume + ":" + settings_.to)},
          {"latest_local", shown(facts_.latest_local)},
          {"latest_published", shown(facts_.latest_published)},
          {"published_at", std::move(published_at)},
          {"backlog_bytes", facts_.backlog},
          {"newest_bytes", facts_.newest_bytes},
          {"volume_bytes", facts_.volume_bytes},
          {"failures", facts_.failures},
          {"is_behind", facts_.is_behind},
          {"job", sending_ && sending_->is_running() ? json::value(std::to_string(sending_->id()))
                                                     : json::value(nullptr)},
          {"unsent", shown(facts_.unsent)},
          {"reason", shown(facts_.reason.empty() ? retry_.error : facts_.reason)}};
}

}  // namespace spark::outputs
