// Requests about datasets, their copies and their leases.
#include <algorithm>
#include <optional>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/service/answers.hpp"
#include "daemon/service/handlers.hpp"
#include "daemon/service/staging_request.hpp"

namespace spark {
namespace {

namespace asio = boost::asio;

using api::Answer;
using api::Request;

// Each takes time on this thread: it is stored, listed and searched. Each user has a share; root has no such
// limit.
constexpr std::size_t kMostSubjects = 10'000, kMostLeases = 10'000;

std::optional<Answer> refuse_job(const DaemonParts& daemon, const Request& request) {
  if (request.caller.may_change || daemon.jobs.running_subjects(request.caller.uid) < kMostSubjects)
    return std::nullopt;
  return too_much_answer(
      std::to_string(kMostSubjects) + " datasets are being worked on for this user already",
      "wait until some have ended; `spark-stage status` shows them");
}

// "job:slurm:123:imagenet", "job:slurm:123" → "slurm:123"; empty if it is not a job's.
std::string job_of_lease(const std::string& id) {
  if (!id.starts_with(staging::kJobLease)) return "";
  const std::string key = id.substr(staging::kJobLease.size());
  const std::size_t system = key.find(':');
  return system == std::string::npos ? key : key.substr(0, key.find(':', system + 1));
}

}  // namespace

asio::awaitable<Answer> get_datasets(const DaemonParts& daemon, Request /*request*/) {
  co_await daemon.datasets.look_again();
  co_return answer_with(daemon.datasets.list());
}

asio::awaitable<Answer> get_fleet_datasets(const DaemonParts& daemon, Request /*request*/) {
  const auto own = daemon.datasets.list();
  if (!own) co_return api::error_answer(own.error());
  auto compared = co_await daemon.peers.compare(*get_array(*own, "datasets"));
  co_return answer_with(std::move(compared));
}

Answer post_staging(const DaemonParts& daemon, const Request& request) {
  if (auto refused = refuse_job(daemon, request)) return std::move(*refused);
  // Those of jobs that wait are counted with the datasets being worked on.
  const std::string user = user_in_words(request.caller.uid);
  const auto leases = std::ranges::count_if(daemon.datasets.leases().all(), [&](const auto& lease) {
    return lease.second.is_staged() && lease.second.holder.ends_with(user);
  });
  if (!request.caller.may_change && static_cast<std::size_t>(leases) >= kMostLeases)
    return too_much_answer("this user has " + std::to_string(kMostLeases) + " leases already",
                           "`spark-stage ls` shows them, `spark-stage release LEASE` ends one");
  if (auto going_on = daemon.datasets.cache_place().check_no_reset(); !going_on)
    return api::error_answer(going_on.error());
  auto wanted = read_staging(request);
  return wanted ? accepted_answer(daemon.datasets.requests().stage(std::move(*wanted)))
                : api::error_answer(wanted.error());
}

asio::awaitable<Answer> post_verify(const DaemonParts& daemon, Request request) {
  if (auto refused = refuse_job(daemon, request)) co_return std::move(*refused);
  co_await daemon.datasets.look_again();
  const bool sha256 = get_bool(request.body, "sha256").value_or(false);
  const std::string& name = request.path[2];
  const auto job = daemon.datasets.upkeep().verify(name, sha256, asker_of(request.caller));
  const bool may_be_output =
      !job && job.error().kind == Errc::NotFound && name.find(':') != std::string::npos;
  co_return may_be_output ? verify_output(daemon, request) : accepted_answer(job);
}

asio::awaitable<Answer> post_evict(const DaemonParts& daemon, Request request) {
  if (auto refused = refuse_job(daemon, request)) co_return std::move(*refused);
  co_await daemon.datasets.look_again();
  if (auto going_on = daemon.datasets.cache_place().check_no_reset(); !going_on)
    co_return api::error_answer(going_on.error());
  co_return accepted_answer(daemon.datasets.upkeep().evict(request.path[2], asker_of(request.caller)));
}

Answer post_scrub(const DaemonParts& daemon, const Request& request) {
  if (auto refused = refuse_job(daemon, request)) return std::move(*refused);
  auto names = dataset_names(request.body);
  return names ? accepted_answer(daemon.datasets.upkeep().scrub(std::move(*names), asker_of(request.caller)))
               : api::error_answer(names.error());
}

Answer post_cache_move(const DaemonParts& daemon, const Request& request) {
  const std::string path = get_text(request.body, "path");
  if (!path.starts_with('/'))
    return api::error_answer({Errc::Invalid, "moving the cache: \"path\" is no absolute path",
                              "`spark-stage cache move PATH` sends one"});
  if (auto usable = config::check_cache_path(daemon.config.current(), path); !usable)
    return api::error_answer(usable.error());
  const auto last = get_bool(request.body, "discard").value_or(false) ? datasets::LastCopies::Discarded
                                                                      : datasets::LastCopies::Brought;
  return accepted_answer(daemon.datasets.cache_place().move(path, last, asker_of(request.caller)));
}

Answer post_cache_reset(const DaemonParts& daemon, const Request& request) {
  const bool deletes = get_bool(request.body, "delete_copies").value_or(false);
  const bool forgets = get_bool(request.body, "forget").value_or(false);
  if (deletes && forgets)
    return api::error_answer({Errc::Invalid,
                              "resetting the cache: both \"forget\" and \"delete_copies\" are set",
                              "one is for a drive that is gone, the other for copies that are there"});
  const auto wish = deletes   ? datasets::ResetWish::DeleteCopies
                    : forgets ? datasets::ResetWish::Forget
                              : datasets::ResetWish::Nothing;
  return accepted_answer(daemon.datasets.cache_place().reset(wish, asker_of(request.caller)));
}

// A simulated host has no copies in memory.
Answer post_drop(const DaemonParts& daemon, const Request& request) {
  if (auto refused = refuse_job(daemon, request)) return std::move(*refused);
  auto names = dataset_names(request.body);
  if (!names) return api::error_answer(names.error());
  if (daemon.is_simulated)
    return api::error_answer({Errc::Unsupported, "the page cache of a simulated host can't be dropped", ""});
  return accepted_answer(daemon.memory.drop(std::move(*names), asker_of(request.caller)));
}

// The ID may be a job's, without a dataset: then all of its leases, and stagings for it alone, end.
asio::awaitable<Answer> delete_lease(const DaemonParts& daemon, Request request) {
  const std::string& id = request.path[2];
  const std::string job = job_of_lease(id);
  if (const auto user = daemon.datasets.job_leases().user_of(job)) {
    Asker asker{.scheduler_job = job, .user = *user};
    const bool is_allowed = co_await may_end(daemon, request.caller, std::move(asker));
    if (!is_allowed) {
      co_return api::error_answer({Errc::Denied, printable(id) + " belongs to another user's job",
                                   "it ends with the job; root may end it earlier"});
    }
  }
  const bool is_whole_job = !job.empty() && id.size() == staging::kJobLease.size() + job.size();
  const auto released =
      is_whole_job ? daemon.datasets.job_leases().end(job) : daemon.datasets.leases().release(id);
  co_return released ? ok_answer(json::object{{"released", printable(id)}})
                     : api::error_answer(released.error());
}

}  // namespace spark
