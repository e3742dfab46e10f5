// Requests about datasets, their copies and their leases.
#include <optional>

#include "base/text.hpp"
#include "daemon/service/answers.hpp"
#include "daemon/service/handlers.hpp"
#include "daemon/service/staging_request.hpp"

namespace spark {
namespace {

using api::Answer;
using api::Request;

// Each takes time on this thread: it is stored, listed and searched. Root has no such limit.
constexpr std::size_t kMostSubjects = 10'000, kMostLeases = 10'000;

Answer too_much(const std::string& what, const std::string& hint) {
  Answer answer = api::error_answer({Errc::Unavailable, what, hint});
  answer.status = 429;
  return answer;
}

std::optional<Answer> refuse_job(const DaemonParts& daemon, const Request& request) {
  if (request.caller.may_change || daemon.jobs.running_subjects() < kMostSubjects) return std::nullopt;
  return too_much(std::to_string(kMostSubjects) + " datasets are being worked on already",
                  "wait until some have ended; `spark-stage status` shows them");
}

Answer job_answer(const Result<JobPtr>& job) {
  return job ? accepted_answer(*job) : api::error_answer(job.error());
}

}  // namespace

Answer get_datasets(const DaemonParts& daemon, const Request& /*request*/) {
  return answer_with(daemon.datasets.list());
}

Answer post_staging(const DaemonParts& daemon, const Request& request) {
  if (auto refused = refuse_job(daemon, request)) return std::move(*refused);
  if (!request.caller.may_change && daemon.datasets.leases().all().size() >= kMostLeases)
    return too_much("there are " + std::to_string(kMostLeases) + " leases already",
                    "`spark-stage ls` shows them, `spark-stage release LEASE` ends one");
  auto wanted = read_staging(request);
  return wanted ? job_answer(daemon.datasets.requests().stage(std::move(*wanted)))
                : api::error_answer(wanted.error());
}

Answer post_verify(const DaemonParts& daemon, const Request& request) {
  if (auto refused = refuse_job(daemon, request)) return std::move(*refused);
  const bool sha256 = get_bool(request.body, "sha256").value_or(false);
  return job_answer(daemon.datasets.upkeep().verify(request.path[2], sha256));
}

Answer post_evict(const DaemonParts& daemon, const Request& request) {
  if (auto refused = refuse_job(daemon, request)) return std::move(*refused);
  return job_answer(daemon.datasets.upkeep().evict(request.path[2]));
}

Answer post_scrub(const DaemonParts& daemon, const Request& request) {
  if (auto refused = refuse_job(daemon, request)) return std::move(*refused);
  auto names = dataset_names(request.body);
  return names ? job_answer(daemon.datasets.upkeep().scrub(std::move(*names)))
               : api::error_answer(names.error());
}

Answer delete_lease(const DaemonParts& daemon, const Request& request) {
  const auto released = daemon.datasets.leases().release(request.path[2]);
  return released ? ok_answer(json::object{{"released", printable(request.path[2])}})
                  : api::error_answer(released.error());
}

}  // namespace spark
