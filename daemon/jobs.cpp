#include "daemon/jobs.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>

#include "base/text.hpp"
#include "daemon/token.hpp"

namespace spark {
namespace {

std::string new_mark() {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", std::random_device{}());
  return text;
}

}  // namespace

Job::Job(asio::any_io_executor executor, std::uint64_t id, std::string key, JobSubject subject,
         const Clock& clock)
    : id_(id),
      key_(std::move(key)),
      subject_(std::move(subject)),
      requesters_{subject_.asker.uid},
      clock_(clock),
      started_(clock.wall()),
      changed_(executor) {}

json::object Job::error_to_json(Told told) const {
  if (told == Told::All) return spark::to_json(ended_->error());
  return spark::to_json(Error{ended_->error().kind, "job " + std::to_string(id_) + " failed",
                              "its requester and root are told why"});
}

json::object Job::to_json(Told told) const {
  const bool done = ended_ && ended_->has_value();
  const bool failed = ended_ && !done;
  json::object shown{
      {"id", std::to_string(id_)},
      {"key", key_},
      {"verb", subject_.verb},
      {"subject", printable(join(subject_.names, ", "))},
      {"holder", printable(subject_.asker.holder)},
      {"state", done     ? "done"
                : failed ? "failed"
                         : "running"},
      {"started", rfc3339(started_)},
      {"ended", ended_at_ ? json::value(rfc3339(*ended_at_)) : json::value(nullptr)},
      {"progress", or_null(progress_)},
      {"result", done && told == Told::All ? json::value(ended_->value()) : json::value(nullptr)},
      {"error", failed ? json::value(error_to_json(told)) : json::value(nullptr)}};
  if (accepted_ && told == Told::All) shown["accepted"] = *accepted_;
  return shown;
}

json::object Job::final_event(Told told) const {
  if (!ended_->has_value()) return {{"event", "failed"}, {"error", error_to_json(told)}};
  if (told == Told::All) return {{"event", "done"}, {"result", ended_->value()}};
  json::object result;
  for (const char* key : {"name", "path", "state"}) {  // of an output, as in the subject
    if (const json::value* value = ended_->value().if_contains(key)) result[key] = *value;
  }
  return {{"event", "done"}, {"result", std::move(result)}};
}

std::shared_ptr<const std::string> Job::final_line(Told told) const {
  auto line = final_lines_[told].lock();
  if (!line) line = std::make_shared<const std::string>(json::serialize(final_event(told)) + "\n");
  final_lines_[told] = line;
  return line;
}

void Job::set_progress(json::object progress) {
  progress["event"] = "progress";
  progress_ = std::move(progress);
  changed_.notify();
}

void Job::finish(Result<json::object> ended) {
  if (ended_) return;
  ended_ = std::move(ended);
  outcome_size_ = json::serialize(final_event()).size();
  ended_at_ = clock_.wall();
  on_cancel = nullptr;
  changed_.notify();
}

Result<> Job::cancel() {
  const std::string name = "job " + std::to_string(id_) + " (" + subject_.verb + ")";
  if (ended_) return fail(Errc::NotFound, name + " has ended already");
  const auto cancel = std::move(on_cancel);
  on_cancel = nullptr;
  if (!cancel) return fail(Errc::Unsupported, name + " can't be cancelled", "it ends without a request");
  cancel();
  return {};
}

asio::awaitable<void> Job::next_change() {
  co_await changed_.wait();
}

Jobs::Jobs(asio::any_io_executor executor, const Clock& clock)
    : executor_(std::move(executor)), clock_(clock), mark_(new_mark()) {}

std::shared_ptr<Job> Jobs::create(JobSubject subject) {
  const std::uint64_t id = next_id_++;
  auto job =
      std::make_shared<Job>(executor_, id, std::to_string(id) + "-" + mark_, std::move(subject), clock_);
  jobs_.push_back(job);
  forget_ended();
  return job;
}

// The user with most of them loses the oldest.
void Jobs::forget_ended() {
  constexpr std::size_t kMostOfUser = 100, kMost = 2000, kMostBytesOfUser = 16 << 20;
  struct Kept {
    std::size_t jobs = 0, bytes = 0;
  };
  std::map<uid_t, Kept> ended;
  std::size_t all = 0;
  for (const auto& job : jobs_) {
    if (job->is_running()) continue;
    Kept& kept = ended[job->asker().uid];
    ++kept.jobs;
    kept.bytes += job->outcome_size();
    ++all;
  }
  const auto exceeds = [](const auto& one) {
    const Kept& kept = one.second;
    return kept.jobs > kMostOfUser || (kept.jobs > 1 && kept.bytes > kMostBytesOfUser);
  };
  while (all > 0) {
    auto most = std::ranges::find_if(ended, exceeds);
    if (most == ended.end() && all <= kMost) return;
    if (most == ended.end())
      most = std::ranges::max_element(ended, {}, [](const auto& one) { return one.second.jobs; });
    const auto oldest = std::ranges::find_if(
        jobs_, [&](const auto& job) { return !job->is_running() && job->asker().uid == most->first; });
    most->second.bytes -= (*oldest)->outcome_size();
    --most->second.jobs;
    jobs_.erase(oldest);
    --all;
  }
}

std::size_t Jobs::running_subjects(uid_t uid) const {
  constexpr std::size_t kShort = 100;
  std::size_t subjects = 0;
  for (const auto& job : jobs_) {
    if (!job->is_running() || job->asker().uid != uid) continue;
    subjects += job->subjects().empty() ? 1 : 0;
    for (const std::string& name : job->subjects()) subjects += 1 + name.size() / kShort;
  }
  return subjects;
}

std::shared_ptr<Job> Jobs::find(std::string_view id_or_key) const {
  const auto found = std::ranges::find_if(jobs_, [&](const auto& job) {
    return job->key() == id_or_key || std::to_string(job->id()) == id_or_key;
  });
  return found == jobs_.end() ? nullptr : *found;
}

}  // namespace spark
