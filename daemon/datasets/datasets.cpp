#include "daemon/datasets/datasets.hpp"

#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/timer.hpp"
#include "daemon/token.hpp"

namespace spark::datasets {

Datasets::Datasets(Context context, Jobs& jobs)
    : context_(std::move(context)),
      jobs_(jobs),
      catalog_(context_, activity_),
      leases_(
          context_.executor, context_.runner, context_.clock, [this] { return catalog_.request(); },
          [this] { turns_.set_priorities(); }),
      job_leases_(leases_, jobs_, context_.runner, context_.clock, context_.timings.jobs),
      turns_(context_, activity_, leases_, job_leases_),
      prefetches_(context_, activity_, leases_, turns_),
      attempts_(context_, activity_, catalog_, leases_, turns_, prefetches_),
      requests_(context_, jobs_, activity_, leases_, job_leases_, turns_, attempts_, prefetches_, catalog_),
      upkeep_(context_, jobs_, activity_, catalog_, leases_) {}

asio::awaitable<void> Datasets::start() {
  Timer timer(context_.executor);
  for (;;) {
    const auto opened = co_await open();
    if (opened) break;
    log::warning(opened.error().message());
    catalog_.could_not_open(opened.error());
    timer.expires_after(context_.timings.recover_again);
    if (!co_await timer.wait()) co_return;
  }
  launch(context_.executor, "jobs that hold leases", job_leases_.watch());
  co_await upkeep_.keep_scrubbing();
}

// Leases first: no copy is shown or evicted before its holders are known.
asio::awaitable<Result<>> Datasets::open() {
  auto loaded = co_await leases_.load();
  if (!loaded) co_return loaded;
  knows_leases_ = true;
  auto recovered = co_await catalog_.recover();
  co_return recovered;
}

Result<std::set<std::string>> Datasets::in_use() const {
  if (!knows_leases_) {
    return fail(Errc::Unavailable, "the leases of this host are not known yet",
                "`spark-stage ls` shows an error of the cache");
  }
  std::set<std::string> names(activity_.wanted.begin(), activity_.wanted.end());
  for (const auto& [name, task] : activity_.tasks) names.insert(name);
  for (const auto& [id, lease] : leases_.all()) names.insert(lease.dataset);
  return names;
}

void Datasets::config_changed() {
  attempts_.config_changed();
  if (knows_leases_) launch(context_.executor, "list of the cache", catalog_.refresh());  // other limits
}

Result<json::object> Datasets::list() const {
  return datasets::list(context_, activity_, catalog_, leases_, jobs_);
}

json::array Datasets::stages() const {
  return datasets::stages(activity_, jobs_);
}

json::value Datasets::cache() const {
  const auto catalog = catalog_.known();
  const json::object* usage = catalog ? get_object(**catalog, "usage") : nullptr;
  return usage == nullptr ? json::value(nullptr) : json::value(*usage);
}

std::string Datasets::cache_problem() const {
  const auto catalog = catalog_.known();
  return catalog || catalog_.is_being_opened() ? std::string() : catalog.error().message();
}

}  // namespace spark::datasets
