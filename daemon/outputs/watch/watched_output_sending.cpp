// The sending of an output's checkpoints.
#include <algorithm>

#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/outputs/watch/watched_output.hpp"

namespace spark::outputs {
namespace {

constexpr Duration kFirstPause{60'000}, kLongestPause{600'000};

bool has_progress(const Job& job, const char* what) {
  const auto& progress = job.progress();
  return progress && get_bool(*progress, what).value_or(false);
}

}  // namespace

// In its present state: one that was saved again since is a new one.
bool WatchedOutput::was_tried(const LocalCheckpoint& checkpoint) const {
  return checkpoint.name == retry_.failed && checkpoint.written == retry_.written;
}

// A job that waits for other hosts' shards may wait for one that never comes, and keeps no other from being
// sent.
bool WatchedOutput::is_busy() const {
  if (!sending_) return false;
  const auto& progress = sending_->progress();
  const bool waits = progress && get_string(*progress, "phase") == "stalled";
  return !sending_->is_running() || settings_.nodes <= 1 || !waits;
}

// The others do not wait for one that can't be sent. One that is being sent is seen without a sign.
void WatchedOutput::tell_others(std::vector<std::string> awaited, uid_t owner) {
  const auto phase =
      sending_ && sending_->progress() ? get_string(*sending_->progress(), "phase") : std::nullopt;
  const bool is_queued = sending_ && sending_->is_running() && (!phase || phase == "queued");
  if (!is_queued) std::erase(awaited, retry_.failed);
  if (settings_.complete == config::Complete::OnRequest) awaited.clear();
  others_.plan(std::move(awaited), owner);
}

// At once: a reload or a kill of the daemon would forget it, and while the volume is away only the record
// says so.
asio::awaitable<void> WatchedOutput::note_end_of_sending(std::shared_ptr<Job> job, LocalCheckpoint sent) {
  const auto self = shared_from_this();
  for (bool is_noted = false; job->is_running();) {
    if (!is_noted && has_progress(*job, "published")) {  // older copies are deleted meanwhile
      is_noted = true;
      known_.mark_sent(sent.name, sent.written);
      if (!is_stopped_) co_await known_.save();
      continue;
    }
    co_await job->next_change();
  }
  followed_.erase(job->id());
  others_.plan({}, 0);  // until the next look
  const json::object event = job->final_event();
  const json::object* result = get_object(event, "result");
  // A sending may fail after it has published, or after its shard was sent: the job has saved the step again.
  const bool is_published = has_progress(*job, "published");
  if (is_published) {
    known_.mark_sent(sent.name, sent.written);
  } else if (result != nullptr ? lacks_shards(*result) : has_progress(*job, "shard_sent")) {
    known_.mark_shard_sent(sent.name, sent.written);
  }
  if (result != nullptr && is_published) cleanup_.note_there(get_text(*result, "not_deleted"));
  if (was_tried(sent)) note_result(event);
  if (!is_stopped_) co_await known_.save();  // otherwise the record is that of another
}

// Of the last sending.
void WatchedOutput::note_result(const json::object& event) {
  const json::object* result = get_object(event, "result");
  if (result == nullptr) {
    ++facts_.failures;
    const json::object* error = get_object(event, "error");
    retry_.error = error == nullptr ? "" : error_from_json(*error).message();
    retry_.pause = std::clamp(retry_.pause * 2, kFirstPause, kLongestPause);
    retry_.next = context_.clock.steady() + retry_.pause;
  } else if (lacks_shards(*result)) {
    retry_.error = retry_.failed + ": " + missing_shards(*result, settings_.nodes);
    retry_.next = context_.clock.steady() + context_.timings.shards;
  } else {
    retry_ = {};
  }
}

asio::awaitable<Result<std::shared_ptr<Job>>> WatchedOutput::send(LocalCheckpoint checkpoint,
                                                                  const Seen& seen, Asked asked) {
  // What is not listed is read from nowhere else than where checkpoints are held: any user may name anything.
  const bool is_listed = find_named(seen.local, checkpoint.name) != nullptr;
  const std::filesystem::path folder = is_listed ? settings_.path.native() : seen.holding.path;
  StageOutRequest request;
  request.source = (folder / checkpoint.name).native();
  request.volume = settings_.volume;
  request.path = path_on_volume(settings_, checkpoint.name);
  request.nodes = settings_.nodes;
  request.marker = settings_.nodes > 1 ? settings_.marker : "";
  request.waits = asked != Asked::ByRule;
  request.is_repeated = asked == Asked::Again;
  request.rule = rule_of(settings_);
  request.asker.holder = "output " + settings_.name;
  request.asker.uid = seen.owner;
  request.written = checkpoint.written;
  request.hurries = facts_.is_behind;
  request.is_flushed = true;  // by the check that found it
  std::string trouble;
  if (hold_.is_needed && is_listed) {
    auto held = co_await stage_outs_.held().hold(request.source, seen.holding.path, checkpoint.written);
    if (!held) trouble = held.error().message();
    if (held) request.source = std::move(*held);
  }
  auto job = co_await stage_outs_.send(std::move(request));
  if (job) {
    hold_.trouble = std::move(trouble);  // only of one that is being sent
    sending_ = *job;
    if (!was_tried(checkpoint)) retry_.error.clear();
    retry_.failed = checkpoint.name;  // until the sending succeeds
    retry_.written = checkpoint.written;
    if (followed_.insert((*job)->id()).second)
      launch(context_.executor, "the end of job " + std::to_string((*job)->id()),
             note_end_of_sending(*job, std::move(checkpoint)));
  }
  co_return job;
}

}  // namespace spark::outputs
