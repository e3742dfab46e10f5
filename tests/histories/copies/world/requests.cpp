#include "tests/histories/copies/world/requests.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/service/staging_request.hpp"
#include "tests/histories/copies/host/copies_on_drive.hpp"

namespace spark::histories::copies {
Requests::PendingPtr Requests::add(std::string verb, std::vector<std::string> datasets) {
  auto pending = std::make_shared<Pending>();
  pending->verb = std::move(verb);
  pending->datasets = std::move(datasets);
  pending->from = scene_.time.now();
  pending->faults = scene_.fate.faulty;
  pending->lease_faults = scene_.fate.faulty_leases;
  pending->is_alone = pending_.empty();
  for (const PendingPtr& other : pending_) other->is_alone = false;
  pending->was_troubled = !scene_.trouble.has_catalog() || scene_.trouble.is_drive_full;
  pending->is_only_state_full = scene_.trouble.is_state_full && !scene_.trouble.is_catalog_damaged &&
                                !scene_.trouble.is_catalog_locked && !scene_.trouble.is_drive_full;
  for (const auto& [name, source] : scene_.sources) {
    Before& before = pending->before[name];
    before.version = source->version();
    before.is_mounted = scene_.drives.mounted(source->place().disk) == Mounted::Right;
    before.is_known = scene_.known.contains(name);
    before.newest = newest_generation(name);
    before.is_damaged = !scene_.rot.below(generation_folder(name, before.newest), SteadyTime::max()).empty();
    before.generations = generations_on_drive(name).size();
    before.is_current = is_current(name);
    before.files = Drives::files_below({generation_folder(name, before.newest)});
    before.joined = {pending->from, before.is_mounted, before.version, pending->faults};
    if (pending->verb != "copy") join_others(name, before.joined);
  }
  pending_.push_back(pending);
  for (const std::string& name : pending->datasets) results_[pending->verb + " " + name].clear();
  return pending;
}

void Requests::join_others(const std::string& dataset, Joined& joined) const {
  for (const PendingPtr& other : pending_) {
    const bool stages = other->verb == "stage" || other->verb == "prefetch";
    if (!stages || std::ranges::find(other->datasets, dataset) == other->datasets.end()) continue;
    const Joined& with = other->before.at(dataset).joined;
    joined.from = std::min(joined.from, with.from);
    joined.was_mounted = joined.was_mounted && with.was_mounted;
    joined.version = std::min(joined.version, with.version);
    joined.faults = std::min(joined.faults, with.faults);
  }
}

// The product has a good copy of the source as it is now.
bool Requests::is_current(const std::string& dataset) const {
  const auto good = scene_.last_good.find(dataset);
  if (good == scene_.last_good.end()) return false;
  const std::uint64_t newest = newest_generation(dataset);
  return newest == good->second.generation && good->second.catalogs_lost == scene_.trouble.catalogs_lost &&
         good->second.version == scene_.sources.at(dataset)->version() &&
         scene_.rot.below(generation_folder(dataset, newest), SteadyTime::max()).empty();
}

void Requests::follow(SimulatedDaemon& daemon, const PendingPtr& pending, Result<std::shared_ptr<Job>> job) {
  if (!job) return ended(pending, fail(job.error()));
  pending->job = *job;
  launch(daemon.context().get_executor(), "the caller of " + pending->verb, wait_for(pending));
}

asio::awaitable<void> Requests::wait_for(PendingPtr pending) {
  const std::shared_ptr<Job> job = pending->job;
  while (job->is_running()) co_await job->next_change();
  const json::object event = job->final_event();
  const json::object* result = get_object(event, "result");
  const json::object* error = get_object(event, "error");
  if (result != nullptr) {
    ended(pending, *result);
  } else {
    ended(pending, fail(error != nullptr ? error_from_json(*error) : Error{}));
  }
}

void Requests::stage(SimulatedDaemon& daemon, const StageWish& wish) {
  const auto pending = add(wish.is_prefetch ? "prefetch" : "stage", wish.datasets);
  pending->wish = wish;
  api::Request request;
  request.caller = {.may_change = true, .may_use = true};
  json::array names;
  for (const std::string& name : wish.datasets) names.emplace_back(name);
  request.body["datasets"] = std::move(names);
  if (wish.is_prefetch) request.body["prefetch"] = true;
  if (wish.accepts_source) request.body["accept_source"] = true;
  if (wish.by) request.body["by"] = rfc3339(scene_.time.wall() + *wish.by);
  if (wish.lease) request.body["lease_s"] = wish.lease->count();
  if (wish.holder == StageWish::Holder::Job) {
    pending->process = std::make_shared<Process>();
    request.caller.pid = pending->process->pid();
  }
  if (wish.holder != StageWish::Holder::None) request.body["hold"] = true;
  auto read = read_staging(request);
  if (!read) return ended(pending, fail(read.error()));
  follow(daemon, pending, daemon.datasets().requests().stage(std::move(*read)));
}

void Requests::verify(SimulatedDaemon& daemon, const std::string& dataset) {
  follow(daemon, add("verify", {dataset}), daemon.datasets().upkeep().verify(dataset, false));
}

void Requests::evict(SimulatedDaemon& daemon, const std::string& dataset) {
  uses_.note_evicting(dataset);
  follow(daemon, add("evict", {dataset}), daemon.datasets().upkeep().evict(dataset));
}

void Requests::copy(SimulatedDaemon& daemon, const std::string& dataset, bool verify) {
  std::filesystem::create_directories(copied_to(dataset).parent_path());
  const auto pending = add("copy", {dataset});
  pending->is_verified = verify;
  launch(daemon.context().get_executor(), "copy", run_copy(daemon, pending));
}

asio::awaitable<void> Requests::run_copy(SimulatedDaemon& daemon, PendingPtr pending) {
  const std::string& dataset = pending->datasets.front();
  workers::Call call{"copy",
                     dataset,
                     {{"from", scene_.sources.at(dataset)->place().path.native()},
                      {"to", copied_to(dataset).native()},
                      {"verify", pending->is_verified}}};
  workers::Cancellation never;
  const auto copied = co_await daemon.runner().run(std::move(call), never);
  ended(pending, copied);
}

void Requests::cancel(std::size_t number) {
  const PendingPtr pending = pending_[number % pending_.size()];
  if (!pending->job) return;
  scene_.tell("the user cancels " + pending->verb + " of " + names_in(pending->datasets));
  (void)pending->job->cancel();
}

void Requests::note_unmounted(const std::string& disk) {
  for (const PendingPtr& pending : pending_) {
    for (const auto& [name, source] : scene_.sources) {
      if (source->place().disk != disk) continue;
      pending->before[name].is_mounted = false;
      pending->before[name].joined.was_mounted = false;
    }
  }
}

void Requests::note_trouble() {
  for (const PendingPtr& pending : pending_) {
    pending->was_troubled = true;
    pending->is_only_state_full = false;
  }
}

std::string Requests::names() const {
  std::vector<std::string> names;
  for (const PendingPtr& pending : pending_)
    names.push_back(pending->verb + " of " + names_in(pending->datasets));
  return join(names, ", ");
}

}  // namespace spark::histories::copies
