// What users and jobs ask of an output.
#include <algorithm>

#include "base/text.hpp"
#include "daemon/outputs/watch/watched_output.hpp"
#include "staging/checkpoints/checkpoint_name.hpp"

namespace spark::outputs {
namespace {

// Whether one that is not listed may wait for the volume: any user may name as many, each has a record, and
// counts as the owner's. One that is being sent is joined.
bool may_wait(const std::vector<TransferPtr>& transfers, const config::Output& output,
              const std::filesystem::path& holding, const std::string& name) {
  constexpr int kMost = 20;
  int waiting = 0;
  for (const TransferPtr& one : transfers) {
    const StageOutRequest& request = one->request();
    if (request.volume == output.volume && request.path == path_on_volume(output, name)) return true;
    if (std::filesystem::path(request.source).parent_path() == holding) ++waiting;
  }
  return waiting < kMost;
}

tl::unexpected<Error> nothing_complete(const config::Output& output,
                                       const std::vector<LocalCheckpoint>& local) {
  const std::string folder = printable(output.path.native());
  const std::string first =
      local.empty() ? "" : ": " + printable(local.front().name) + ": " + local.front().incomplete;
  return fail(Errc::NotFound,
              "output " + output.name + ": there is no complete checkpoint in " + folder + first,
              "docs/stage-out.md says when a checkpoint is complete");
}

Result<LocalCheckpoint> find_newest(const config::Output& output, const std::vector<LocalCheckpoint>& local) {
  const LocalCheckpoint* newest = newest_complete(local);
  return newest == nullptr ? nothing_complete(output, local) : Result<LocalCheckpoint>(*newest);
}

// One that is not listed any more, or in another state, may be held, or be on the volume: its sending finds
// that. Any user may ask for any state of anything: nothing here is sent that is no complete checkpoint.
Result<LocalCheckpoint> find_accepted(const config::Output& output, const std::vector<LocalCheckpoint>& local,
                                      const Accepted& accepted) {
  LocalCheckpoint one;
  one.name = accepted.checkpoint;
  one.written = accepted.written;
  const LocalCheckpoint* here = find_named(local, accepted.checkpoint);
  // As check_still_complete() compares it.
  const bool is_here = here != nullptr && (here->written == one.written || here->changed_ns == one.written);
  if (!is_here || here->incomplete.empty()) return one;
  return fail(Errc::Mismatch,
              "output " + output.name + ": " + printable(one.name) +
                  " is not complete, as it was when it was accepted: " + here->incomplete,
              "send it again once it is complete");
}

// A higher one may be complete: the asker is told, since the job would lose what it did since.
void add_unproven(const Holdings& seen, const std::vector<std::string>& unknown,
                  const staging::Standing& answer, json::object& found) {
  const auto one = std::ranges::find_if(seen.local, [&](const LocalCheckpoint& other) {
    return other.is_unproven && other.name != answer.name && staging::standing_of(other) > answer;
  });
  if (one != seen.local.end()) {
    found["unproven"] = {{"name", one->name}, {"reason", one->incomplete}};
    return;
  }
  const auto there = std::ranges::find_if(
      unknown, [&](const std::string& name) { return staging::may_be_above(name, answer.name); });
  if (there == unknown.end()) return;
  found["unproven"] = {{"name", *there},
                       {"reason",
                        "on the volume, without a manifest that counts: another user sent it, or it "
                        "was copied by hand"}};
}

// The last one of another series that was saved after the answer, at a lower step: a job that is in a later
// stage, or a second job, would go on from there. Which of the two is right only the asker knows.
void add_later(const Holdings& seen, const staging::Standing& answer, json::object& found) {
  std::int64_t last = answer.time_ns;
  const auto consider = [&](const auto& one) {
    const staging::Standing its = staging::standing_of(one);
    if (!its.step || its.step >= answer.step || its.time_ns <= last ||
        staging::form_of(one.name) == staging::form_of(answer.name))
      return;
    last = its.time_ns;
    found["later"] = {{"name", one.name}};
  };
  for (const LocalCheckpoint& one : seen.local) {
    if (one.incomplete.empty()) consider(one);
  }
  if (seen.published) std::ranges::for_each(*seen.published, consider);
}

// Another host may have sent a higher one, and one of several hosts has only a shard.
bool is_latest_here(const config::Output& output, const Holdings& seen, const LocalCheckpoint& newest,
                    bool offline) {
  if (output.nodes > 1) return false;
  if (!seen.published) return offline;
  const PublishedCheckpoint* there = seen.published->empty() ? nullptr : &seen.published->front();
  if (there == nullptr) return true;
  // Another host may have a later last.ckpt.
  if (there->name == newest.name)
    return staging::step_of(newest.name) || staging::time_of(newest) >= staging::time_of(*there);
  return staging::standing_of(newest) > staging::standing_of(*there);
}

// A staged checkpoint has another name, and no tracker beside it: Megatron-LM would start from random
// weights.
tl::unexpected<Error> no_megatron(const config::Output& output, const PublishedCheckpoint& published) {
  return fail(Errc::Refused,
              "output " + output.name + ": " + printable(published.name) +
                  " is on the volume, and Megatron-LM can't load it from a staged copy",
              "give --load the folder " + printable(output.to) + " on volume " + output.volume + ": it has " +
                  staging::kMegatronTracker);
}

}  // namespace

tl::unexpected<Error> WatchedOutput::no_folder(const Seen& seen) const {
  if (!seen.is_away) return fail(Errc::NotFound, seen.missing);
  return fail(Errc::Unavailable, "output " + settings_.name + ": " + seen.missing,
              seen.is_unmounted
                  ? "mount it, or remove its line from /etc/fstab if it is gone; until then `spark-stage "
                    "latest --offline` gives the newest on the volume"
                  : "mount it there");
}

asio::awaitable<Result<std::shared_ptr<Job>>> WatchedOutput::send_newest(std::optional<Accepted> accepted) {
  const auto self = shared_from_this();  // a reload may drop this output meanwhile
  auto seen = co_await look_until_settled();
  if (!seen) co_return fail(seen.error());
  if (!seen->missing.empty()) co_return no_folder(*seen);
  const bool is_unlisted = accepted && find_named(seen->local, accepted->checkpoint) == nullptr;
  if (is_unlisted &&
      !may_wait(stage_outs_.transfers(), settings_, seen->holding.path, accepted->checkpoint)) {
    co_return fail(
        Errc::Unavailable,
        "output " + settings_.name + ": too many checkpoints that are not here any more are asked for",
        "wait until their jobs have ended; `spark-stage jobs` shows them");
  }
  auto next =
      accepted ? find_accepted(settings_, seen->local, *accepted) : find_newest(settings_, seen->local);
  if (!next) co_return next.take_error();
  auto job = co_await send(std::move(*next), *seen, accepted ? Asked::Again : Asked::Now);
  co_return job;
}

Result<> WatchedOutput::job_ended() {
  if (settings_.complete == config::Complete::OnRequest) {
    return fail(
        Errc::Refused, "output " + settings_.name + " has no rule that says when a checkpoint is complete",
        "set `complete` for it, or send with `spark-stage stage-out " + settings_.name + "` when one is");
  }
  if (!sending_) retry_ = {};
  pause_.is_short = true;
  pause_.timer.cancel();
  return {};
}

asio::awaitable<Result<json::object>> WatchedOutput::look_now() {
  const auto self = shared_from_this();  // a reload may drop this output meanwhile
  const auto seen = co_await look();
  if (!seen) co_return fail(seen.error());
  if (!seen->missing.empty()) co_return no_folder(*seen);
  co_return to_json();
}

asio::awaitable<Result<json::object>> WatchedOutput::latest(bool offline) {
  const auto self = shared_from_this();  // a reload may drop this output meanwhile
  const SteadyTime asked = context_.clock.steady();
  auto seen = co_await look_until_settled();
  if (!seen) {
    Error error = seen.error();
    if (error.kind == Errc::NotFound) error.kind = Errc::Unavailable;
    co_return fail(std::move(error));
  }
  const LocalCheckpoint* newest = newest_complete(seen->local);
  const bool is_here = newest != nullptr && is_latest_here(settings_, *seen, *newest, offline);
  const PublishedCheckpoint* published =
      seen->published && !seen->published->empty() ? &seen->published->front() : nullptr;
  // Without its record, this host may have had a higher one.
  const bool can_answer = offline && published != nullptr && known_.has_loaded();
  if (seen->is_unmounted && !can_answer) co_return no_folder(*seen);
  const std::string answer = is_here ? newest->name : published != nullptr ? published->name : "";
  const auto hidden = std::ranges::find_if(
      seen->unreadable, [&](const UnreadableCopy& one) { return staging::may_be_above(one.name, answer); });
  if (hidden != seen->unreadable.end()) {
    co_return fail(Errc::Unavailable,
                   "output " + settings_.name + ": " + printable(hidden->name) +
                       " on the volume may be complete: " + hidden->reason,
                   "");
  }
  const std::string unseen =
      seen->missing.empty() || !seen->published ? "" : known_.unsent_above(&*seen->published);
  if (!unseen.empty()) {
    const std::size_t hint = seen->missing.find(" - ");  // of a folder that is not there
    const std::string made =
        hint == std::string::npos ? "" : "; if it was deleted on purpose, create the folder";
    co_return fail(
        Errc::Unavailable, "output " + settings_.name + ": " + seen->missing.substr(0, hint),
        "mount its file system: it had " + printable(unseen) + ", which is not on the volume" + made);
  }
  if (!is_here && published != nullptr && staging::megatron_iteration(published->name))
    co_return no_megatron(settings_, *published);
  json::object found;
  if (is_here) {
    found = {{"name", answer}, {"local", (settings_.path / answer).native()}};
  } else if (published != nullptr) {
    found = {{"name", answer}, {"dataset", settings_.volume + ":" + path_on_volume(settings_, answer)}};
  }
  if (!found.empty()) {
    const auto standing = is_here ? staging::standing_of(*newest) : staging::standing_of(*published);
    add_unproven(*seen, seen->unknown, standing, found);
    add_later(*seen, standing, found);
  }
  const bool waits_for_others = settings_.nodes > 1 && settings_.complete != config::Complete::OnRequest;
  if (!is_here && newest != nullptr && seen->published && waits_for_others) {
    const CheckpointPlan plan = plan_checkpoints(settings_, *seen, known_.sent());
    if (plan.is_newest_pending) found["pending"] = pending(*seen, *newest, plan.may_publish, asked);
  }
  if (found.empty()) co_return no_latest(*seen);
  co_return found;
}

tl::unexpected<Error> WatchedOutput::no_latest(const Seen& seen) const {
  const std::string name = "output " + settings_.name, folder = printable(settings_.path.native());
  const LocalCheckpoint* newest = newest_complete(seen.local);
  if (!seen.published && newest != nullptr && settings_.nodes <= 1) {
    return fail(Errc::Unavailable,
                name + ": " + seen.unlisted + "; " + printable(newest->name) + " in " + folder +
                    " is complete, but the volume may have a later one",
                "ask again when that is over; `spark-stage latest --offline` gives the local one");
  }
  if (!seen.published)
    return fail(Errc::Unavailable, name + ": " + seen.unlisted, "ask again when that is over");
  if (!known_.has_loaded()) {
    return fail(Errc::Unavailable,
                name + ": the record of the checkpoints that are safely on the drive could not be read",
                "`journalctl -u spark-staged` has the reason");
  }
  const auto unproven = std::ranges::find_if(seen.local, &LocalCheckpoint::is_unproven);
  if (unproven != seen.local.end()) {
    const std::string destination = settings_.volume + ":" + path_on_volume(settings_, unproven->name);
    const std::string nodes = settings_.nodes > 1 ? " --nodes " + std::to_string(settings_.nodes) : "";
    return fail(Errc::Unavailable,
                name + ": " + printable(unproven->name) + " in " + folder +
                    " may be complete, but that is not known: " +
                    unproven->incomplete.substr(0, unproven->incomplete.find(';')),
                "delete it, or send it with `spark-stage stage-out " + folder + "/" +
                    printable(unproven->name) + " " + printable(destination) + nodes + "` if it is right");
  }
  if (!seen.unknown.empty()) {
    const std::string there = settings_.volume + ":" + path_on_volume(settings_, seen.unknown.front());
    return fail(Errc::Unavailable,
                name + ": " + printable(there) +
                    " may be a checkpoint, but has no manifest that counts: another user sent it, "
                    "or it was copied by hand",
                "send it from a folder with `spark-stage stage-out`, or rename it if it is none");
  }
  return nothing_complete(settings_, seen.local);
}

// Checks immediately: a job waits for it.
json::object WatchedOutput::pending(const Seen& seen, const LocalCheckpoint& newest, bool may_publish,
                                    SteadyTime asked) {
  pause_.is_short = true;
  pause_.timer.cancel();
  // A shard that the volume has already is sent again, in case the last host's call was interrupted.
  const bool was_sent = std::ranges::any_of(seen.local, [&](const LocalCheckpoint& one) {
    return one.name == retry_.failed && has_sent(one, seen.begun);
  });
  const auto progress = sending_ && sending_->is_running() ? sending_->progress() : std::nullopt;
  OtherHosts::Awaited awaited{newest.name,
                              progress && get_string(*progress, "phase") != "stalled" && !was_sent};
  for (const BegunCheckpoint& one : seen.begun)
    awaited.others_progress += static_cast<std::int64_t>(one.others_progress);
  json::object answer{{"name", newest.name},
                      {"is_sending", awaited.is_sending},
                      {"others_progress", awaited.others_progress}};
  answer["may_publish"] = others_.is_awaited(awaited, may_publish, asked);
  return answer;
}

}  // namespace spark::outputs
