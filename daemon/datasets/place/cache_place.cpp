#include "daemon/datasets/place/cache_place.hpp"

#include <utility>
#include <vector>

#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "daemon/workers/priority.hpp"

namespace spark::datasets {
namespace {

constexpr char kReset[] = "cache-reset";

std::string in_words(const std::set<std::string>& names) {
  std::vector<std::string> words;
  for (const std::string& name : names) words.push_back(printable(name));
  return join(words, ", ");
}

}  // namespace

std::string CachePlace::holders() const {
  std::vector<const Lease*> held;
  for (const auto& [id, lease] : leases_.all()) held.push_back(&lease);
  return held.empty() ? std::string() : holders_in_words(held);
}

Result<> CachePlace::check_no_reset() const {
  const auto last = last_.lock();
  if (!last || !last->is_running() || last->verb() != kReset) return {};
  return fail(Errc::Unavailable, "the cache is being reset by job " + std::to_string(last->id()),
              "repeat this once `spark-stage wait --job " + std::to_string(last->id()) + "` has ended");
}

Result<> CachePlace::check_path(const std::string& path) const {
  const auto last = last_.lock();
  const json::object request = cache_.catalog_request();
  const json::object* cache = get_object(request, "cache");
  if (!last || !last->is_running() || cache == nullptr || get_string(*cache, "path") == path) return {};
  const std::string id = std::to_string(last->id());
  return fail(Errc::Refused,
              "cache.path can't become " + printable(path) + " now: job " + id + " (" + last->verb() +
                  ") is not done yet",
              "`spark-stage wait --job " + id + "` waits for it, `spark-stage cancel " + id +
                  "` ends it; then reload again");
}

Result<> CachePlace::check_idle(const std::string& doing) const {
  if (const auto last = last_.lock(); last && last->is_running())
    return fail(Errc::Refused,
                doing + ": job " + std::to_string(last->id()) + " (" + last->verb() + ") is not done yet",
                "`spark-stage wait --job " + std::to_string(last->id()) +
                    "` waits for it, `spark-stage cancel` ends it");
  // First: the staging of a live dataset goes on although the job that asked for it is done.
  const std::string viewed = in_words(cache_.viewed());
  if (!viewed.empty())
    return fail(Errc::Refused,
                doing + ": programs use the live view of " + viewed + ", or have files of it open still",
                "wait until they have ended; `spark-stage ls` shows the leases of those that have one");
  const std::string busy = in_words(cache_.busy());
  if (busy.empty()) return {};
  return fail(Errc::Refused, doing + ": " + busy + " is being staged or evicted",
              "wait until that has ended; `spark-stage jobs` shows who asked for it");
}

Result<std::shared_ptr<Job>> CachePlace::move(std::string path, LastCopies last, Asker asker) {
  const std::string doing = "moving the cache to " + printable(path);
  if (auto idle = check_idle(doing); !idle) return idle.take_error();
  workers::Call call;
  call.verb = "move-cache";
  call.request = cache_.catalog_request();
  call.request["to"] = path;
  call.request["held_by"] = "";  // as it is when its turn has come
  call.request["discard"] = last == LastCopies::Discarded;
  return start({"cache-move", {std::move(path)}, std::move(asker)}, std::move(call));
}

Result<std::shared_ptr<Job>> CachePlace::reset(ResetWish wish, Asker asker) {
  const std::string doing = "resetting the cache";
  if (auto idle = check_idle(doing); !idle) return idle.take_error();
  if (const std::string held = holders(); !held.empty())
    return fail(Errc::Refused, doing + ": copies are leased by " + held,
                "wait for their end, or `spark-stage release` them");
  workers::Call call;
  call.verb = "reset-cache";
  call.request = cache_.catalog_request();
  if (wish == ResetWish::Forget) call.request["wish"] = "forget";
  if (wish == ResetWish::DeleteCopies) call.request["wish"] = "delete_copies";
  std::string path = get_text(*get_object(call.request, "cache"), "path");
  return start({kReset, {std::move(path)}, std::move(asker)}, std::move(call));
}

Result<std::shared_ptr<Job>> CachePlace::start(JobSubject subject, workers::Call call) {
  call.subject = "the cache";
  auto job = jobs_.create(std::move(subject));
  last_ = job;
  workers::Cancellation cancellation;
  job->on_cancel = [cancellation, wake = cache_.wake]() mutable {
    cancellation.cancel();
    wake();
  };
  call.on_progress = [job](const json::object& progress) { job->set_progress(progress); };
  const auto priority = leases_.all().empty() ? workers::Priority::Normal : workers::Priority::Idle;
  call.on_start = [priority](pid_t pid) {
    if (const auto set = workers::set_priority(pid, priority); !set) log::survived(set.error());
  };
  launch(executor_, job->verb(), run(job, std::move(call), cancellation));
  return job;
}

asio::awaitable<void> CachePlace::run(std::shared_ptr<Job> job, workers::Call call,
                                      workers::Cancellation cancellation) {
  const bool is_claimed = co_await claim(job, cancellation);
  if (!is_claimed) {
    job->finish(fail(Errc::Cancelled, job->verb() + " was cancelled before it began"));
    co_return;
  }
  co_await leases_.written();  // the worker reads the leases from the catalog
  if (call.request.contains("held_by")) call.request["held_by"] = holders();
  auto done = co_await runner_.run(std::move(call), cancellation);
  cache_.release();
  if (done) log::info(job->verb() + " by " + job->asker().holder + ": " + json::serialize(*done));
  const auto recovered = co_await cache_.recover();
  if (!recovered) log::warning(recovered.error().message());
  if (done && !recovered)
    done = fail_with(recovered.error(), job->verb() + " is done, but the cache can't be used");
  job->finish(std::move(done));
}

asio::awaitable<bool> CachePlace::claim(std::shared_ptr<Job> job, workers::Cancellation cancellation) {
  bool is_claimed = cache_.claim();
  if (!is_claimed) {
    json::object progress{{"phase", "queued"}, {"reason", "the cache is being compared with its catalog"}};
    job->set_progress(std::move(progress));
  }
  while (!is_claimed && !cancellation.is_asked()) {
    co_await cache_.next_change();
    is_claimed = cache_.claim();
  }
  co_return is_claimed;
}

}  // namespace spark::datasets
