#include "daemon/datasets/datasets.hpp"

#include <utility>

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
          [this] { leases_changed(); }),
      job_leases_(leases_, jobs_, context_.runner, context_.clock, context_.timings.jobs),
      turns_(context_, activity_, leases_, job_leases_),
      prefetches_(context_, activity_, leases_, turns_),
      views_(
          context_.executor, context_.runner, context_.clock, [this] { return catalog_.request(); },
          [this] {
            requests_.views().changed();
            upkeep_.views_changed();
          },
          context_.kept, context_.views),
      attempts_(context_, activity_, catalog_, leases_, turns_, prefetches_, views_),
      requests_(context_, jobs_, activity_, leases_, job_leases_, turns_, attempts_, prefetches_, catalog_,
                views_),
      upkeep_(context_, jobs_, activity_, catalog_, leases_, views_),
      cache_place_(context_.executor, context_.runner, jobs_, leases_,
                   {[this] { return catalog_.request(); }, [this] { return busy(); },
                    [this] { return viewed(); }, [this] { return catalog_.recover(); },
                    [this] { return catalog_.claim(); }, [this] { catalog_.release(); },
                    [this] { return catalog_.next_change(); }, [this] { catalog_.wake_claim(); }}) {}

asio::awaitable<void> Datasets::start() {
  Timer timer(context_.executor);
  unsigned failures = 0;
  for (;;) {
    const auto opened = co_await open();
    if (opened) break;
    log::warning(opened.error().message());
    catalog_.could_not_open(opened.error());
    // Readers of an earlier daemon's live views wait for an answer, and some can't be killed. They had the
    // time between two attempts.
    const bool are_kept = context_.kept.earlier && !context_.kept.earlier->empty();
    if (!knows_leases_ && (++failures == 2 || !are_kept)) co_await take_over(opened.error().what);
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
  if (!std::exchange(knows_leases_, true)) co_await take_over("");
  path_ = context_.config().cache.path.native();
  auto recovered = co_await catalog_.recover();
  co_return recovered;
}

// A staging that began before could fail the view that jobs read.
asio::awaitable<void> Datasets::take_over(std::string why_not) {
  const auto earlier = co_await views_.take_over(std::move(why_not));
  for (const auto& view : earlier) job_leases_.keep(view.dataset);
  requests_.views().resume(earlier);
  attempts_.may_begin();
}

void Datasets::leases_changed() {
  turns_.set_priorities();
  requests_.views().changed();
}

std::set<std::string> Datasets::busy() const {
  std::set<std::string> names = activity_.evicting;
  names.insert(activity_.wanted.begin(), activity_.wanted.end());
  for (const auto& [name, task] : activity_.tasks) names.insert(name);
  return names;
}

std::set<std::string> Datasets::viewed() const {
  std::set<std::string> names;
  for (const live::ViewedCopy& copy : views_.copies()) names.insert(copy.dataset);
  return names;
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
  if (knows_leases_) launch(context_.executor, "list of the cache", look_at_cache());
}

// It may have other limits, or be in another folder, whose copies may be others than the catalog has.
asio::awaitable<void> Datasets::look_at_cache() {
  const std::string path = context_.config().cache.path.native();
  if (std::exchange(path_, path) != path) {
    co_await leases_.write_all();  // while the catalog still has what is in the old folder
    const auto recovered = co_await catalog_.recover();
    if (recovered) co_return;
    upkeep_.recover_later();
  }
  co_await catalog_.refresh();
}

Result<json::object> Datasets::list() const {
  return datasets::list(context_, activity_, catalog_, leases_, jobs_, views_);
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
