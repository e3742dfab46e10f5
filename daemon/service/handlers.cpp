// The answer to each request of routes.cpp.
#include <charconv>

#include "base/text.hpp"
#include "base/version.hpp"
#include "daemon/log.hpp"
#include "daemon/service/service.hpp"
#include "daemon/service/staging_request.hpp"

namespace spark {
namespace {

using api::Answer;
using api::Request;

Answer ok(json::value body) {
  Answer answer;
  answer.body = std::move(body);
  return answer;
}

// Each is kept, listed and looked through on this thread. Root has no limit of its own.
constexpr std::size_t kMostSubjects = 10'000, kMostLeases = 10'000;

Answer too_much(const std::string& what, const std::string& hint) {
  Answer answer = api::error_answer({Errc::Unavailable, what, hint});
  answer.status = 429;
  return answer;
}

Answer job_answer(Result<std::shared_ptr<Job>> job) {
  if (!job) return api::error_answer(job.error());
  Answer answer;
  answer.status = 202;
  answer.body = (*job)->to_json();
  return answer;
}

template <class Body>
Answer answer_with(Result<Body> body) {
  return body ? ok(std::move(*body)) : api::error_answer(body.error());
}

// The newest progress first, then each change, then the end.
api::EventSource events_of(std::shared_ptr<Job> job) {
  struct Cursor {
    bool first = true, ended = false;
  };
  return [job, cursor = std::make_shared<Cursor>()]() -> asio::awaitable<std::optional<json::object>> {
    // Captures live in the caller's EventSource, which outlives every call.
    if (cursor->ended) co_return std::nullopt;
    const bool has_news = cursor->first && job->progress();
    cursor->first = false;
    if (job->is_running() && !has_news) co_await job->next_change();
    if (!job->is_running()) {
      cursor->ended = true;
      co_return job->final_event();
    }
    co_return job->progress().value_or(json::object{{"event", "progress"}, {"phase", "queued"}});
  };
}

}  // namespace

Answer Service::get_health(const Request& /*request*/) {
  return ok(json::object{{"status", "ok"}});
}

Answer Service::get_readiness(const Request& /*request*/) {
  Answer answer = ok(readiness_json());
  if (!get_bool(answer.body.as_object(), "ready").value_or(false)) answer.status = 503;
  return answer;
}

Answer Service::get_metrics(const Request& /*request*/) {
  Answer answer;
  answer.metrics = metrics_text();
  return answer;
}

Answer Service::get_status(const Request& /*request*/) {
  return ok(status_json());
}

Answer Service::get_config(const Request& /*request*/) {
  return ok(config::to_json(config_));
}

asio::awaitable<Answer> Service::post_reload(Request /*request*/) {
  auto changed = co_await reload();
  co_return answer_with(std::move(changed));
}

asio::awaitable<Answer> Service::post_plan(Request request) {
  auto planned = co_await plan(std::move(request.body));
  co_return answer_with(std::move(planned));
}

Answer Service::get_datasets(const Request& /*request*/) {
  return answer_with(datasets_.list());
}

std::optional<Answer> Service::refuse_job(const Request& request) const {
  if (request.caller.may_change || jobs_.running_subjects() < kMostSubjects) return std::nullopt;
  return too_much(std::to_string(kMostSubjects) + " datasets are being worked on already",
                  "wait until some have ended; `spark-stage status` shows them");
}

Answer Service::post_staging(const Request& request) {
  if (auto refused = refuse_job(request)) return std::move(*refused);
  if (!request.caller.may_change && datasets_.leases().all().size() >= kMostLeases)
    return too_much("there are " + std::to_string(kMostLeases) + " leases already",
                    "`spark-stage ls` shows them, `spark-stage release LEASE` ends one");
  auto wanted = read_staging(request);
  return wanted ? job_answer(datasets_.requests().stage(std::move(*wanted)))
                : api::error_answer(wanted.error());
}

Answer Service::post_verify(const Request& request) {
  if (auto refused = refuse_job(request)) return std::move(*refused);
  return job_answer(
      datasets_.upkeep().verify(request.path[2], get_bool(request.body, "sha256").value_or(false)));
}

Answer Service::post_evict(const Request& request) {
  if (auto refused = refuse_job(request)) return std::move(*refused);
  return job_answer(datasets_.upkeep().evict(request.path[2]));
}

Answer Service::post_scrub(const Request& request) {
  if (auto refused = refuse_job(request)) return std::move(*refused);
  auto names = dataset_names(request.body);
  return names ? job_answer(datasets_.upkeep().scrub(std::move(*names))) : api::error_answer(names.error());
}

Answer Service::delete_lease(const Request& request) {
  const auto released = datasets_.leases().release(request.path[2]);
  return released ? ok(json::object{{"released", printable(request.path[2])}})
                  : api::error_answer(released.error());
}

Answer Service::get_jobs(const Request& /*request*/) {
  json::array all;
  for (const auto& job : jobs_.all()) all.push_back(job->to_json());
  return ok(json::object{{"jobs", std::move(all)}});
}

Result<std::shared_ptr<Job>> Service::find_job(const Request& request) const {
  const std::string& text = request.path[2];
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  const bool is_number = error == std::errc{} && end == text.data() + text.size();
  auto job = is_number ? jobs_.find(id) : nullptr;
  if (job) return job;
  return fail(Errc::NotFound, "no such job",
              "the daemon may have been restarted since: ask for the work again");
}

Answer Service::get_job(const Request& request) {
  const auto job = find_job(request);
  return job ? ok((*job)->to_json()) : api::error_answer(job.error());
}

Answer Service::get_job_events(const Request& request) {
  const auto job = find_job(request);
  if (!job) return api::error_answer(job.error());
  Answer answer;
  answer.events = events_of(*job);
  return answer;
}

Answer Service::delete_job(const Request& request) {
  const auto job = find_job(request);
  if (!job) return api::error_answer(job.error());
  const auto cancelled = (*job)->cancel();
  return cancelled ? ok((*job)->to_json()) : api::error_answer(cancelled.error());
}

json::object Service::status_json() const {
  json::array volumes;
  for (const auto& volume : volumes_.all())
    volumes.push_back(volumes::to_json(volume->settings(), volume->status()));
  return {{"version", kVersion},
          {"uptime_s", std::chrono::duration_cast<std::chrono::seconds>(clock_.steady() - started_).count()},
          {"volumes", std::move(volumes)},
          {"targets", watches_.to_json(config_)},
          {"stages", datasets_.stages()},
          {"cache", datasets_.cache()},
          {"stuck_workers", runner_.abandoned().size()}};
}

json::object Service::readiness_json() const {
  json::array waiting_for;
  for (const auto& volume : volumes_.all()) {
    const auto state = volume->status().state;
    if (state != volumes::State::Ready && state != volumes::State::Down)
      waiting_for.emplace_back(volume->settings().name);
  }
  const bool ready = waiting_for.empty();
  return {{"ready", ready}, {"waiting_for", std::move(waiting_for)}};
}

}  // namespace spark
