// Requests about jobs: progress and results of long-running operations.
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/service/answers.hpp"
#include "daemon/service/handlers.hpp"
#include "daemon/timer.hpp"

namespace spark {
namespace {

namespace asio = boost::asio;

using api::Answer;
using api::Request;

constexpr Duration kHeartbeat{5'000};     // docs/api.md promises 10 s
constexpr Duration kUserDeadline{5'000};  // a directory server may be queried

Result<JobPtr> find_job(const DaemonParts& daemon, const Request& request) {
  const std::string& text = request.path[2];
  if (auto job = daemon.jobs.find(text)) return job;
  return fail(
      Errc::NotFound, "no job " + printable(text),
      "`spark-stage jobs` lists the jobs since the daemon's start; of the ended ones, each user's last 100");
}

// Waits for news of the job, but not so long that its followers take this daemon for hung.
asio::awaitable<void> next_event_of(JobPtr job) {
  using namespace asio::experimental::awaitable_operators;  // NOLINT(google-build-using-namespace)
  Timer timer(co_await asio::this_coro::executor);
  timer.expires_after(kHeartbeat);
  auto news = job->next_change();
  auto silence = timer.wait();
  co_await (std::move(news) || std::move(silence));
}

// The latest progress first, then each change, then the end. Without a change the progress is repeated.
api::EventSource events_of(JobPtr job, Job::Told told) {
  struct Cursor {
    bool first = true, ended = false;
  };
  return [job, told, cursor = std::make_shared<Cursor>()]() -> asio::awaitable<api::EventLine> {
    // The captures live in the caller's EventSource, which outlives every call.
    if (cursor->ended) co_return nullptr;
    const bool has_news = cursor->first && job->progress();
    cursor->first = false;
    if (job->is_running() && !has_news) co_await next_event_of(job);
    if (!job->is_running()) {
      cursor->ended = true;
      co_return job->final_line(told);
    }
    const auto progress = job->progress().value_or(json::object{{"event", "progress"}, {"phase", "queued"}});
    co_return std::make_shared<const std::string>(json::serialize(progress) + "\n");
  };
}

}  // namespace

asio::awaitable<bool> may_end(const DaemonParts& daemon, api::Caller caller, Asker asker) {
  if (caller.may_change || caller.uid == asker.uid) co_return true;
  if (asker.user.empty()) co_return false;
  json::object request{{"user", asker.user}};
  const auto user =
      co_await daemon.runner.ask_jointly("the user of a job", "user", std::move(request), kUserDeadline);
  if (!user) log::survived(user.error());
  co_return user.has_value() && get_int(*user, "uid") == std::int64_t{caller.uid};
}

namespace {

asio::awaitable<Job::Told> told_to(const DaemonParts& daemon, api::Caller caller, JobPtr job) {
  if (job->has_requester(caller.uid)) co_return Job::Told::All;
  const bool may = co_await may_end(daemon, std::move(caller), job->asker());
  co_return may ? Job::Told::All : Job::Told::Outcome;
}

}  // namespace

// The user of a scheduler's job, whose number is not known here, asks for that job alone.
Answer get_jobs(const DaemonParts& daemon, const Request& request) {
  json::array all;
  for (const auto& job : daemon.jobs.all()) {
    const bool is_own = request.caller.may_change || job->has_requester(request.caller.uid);
    all.push_back(job->to_json(is_own ? Job::Told::All : Job::Told::Outcome));
  }
  return ok_answer(json::object{{"jobs", std::move(all)}});
}

asio::awaitable<Answer> get_job(const DaemonParts& daemon, Request request) {
  const auto job = find_job(daemon, request);
  if (!job) co_return api::error_answer(job.error());
  const Job::Told told = co_await told_to(daemon, request.caller, *job);
  co_return ok_answer((*job)->to_json(told));
}

asio::awaitable<Answer> get_job_events(const DaemonParts& daemon, Request request) {
  const auto job = find_job(daemon, request);
  if (!job) co_return api::error_answer(job.error());
  const Job::Told told = co_await told_to(daemon, request.caller, *job);
  Answer answer;
  answer.events = events_of(*job, told);
  co_return answer;
}

asio::awaitable<Answer> delete_job(const DaemonParts& daemon, Request request) {
  const auto job = find_job(daemon, request);
  if (!job) co_return api::error_answer(job.error());
  const bool is_allowed = co_await may_end(daemon, request.caller, (*job)->asker());
  if (!is_allowed) {
    co_return api::error_answer({Errc::Denied,
                                 "job " + request.path[2] + " was asked for by " +
                                     printable((*job)->asker().holder) + ": uid " +
                                     std::to_string(request.caller.uid) + " may not cancel it",
                                 "its requester and root may"});
  }
  const auto cancelled = (*job)->cancel();
  co_return cancelled ? ok_answer((*job)->to_json()) : api::error_answer(cancelled.error());
}

}  // namespace spark
