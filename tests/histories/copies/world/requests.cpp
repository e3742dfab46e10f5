#include "tests/histories/copies/world/requests.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/service/staging_request.hpp"
#include "tests/histories/copies/world/copies_on_drive.hpp"
#include "tests/histories/copies/world/places.hpp"

namespace spark::histories::copies {
namespace {

std::string list_of(const std::vector<std::string>& names) {
  return join(names, " and ");
}

// An error's text without what differs between two runs: processes and leases.
std::string in_words(const Error& error) {
  std::string text = error.what;
  for (const char* key : {"pid ", "lease "}) {
    for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
      std::size_t begin = at + std::string_view(key).size(), end = begin;
      while (end < text.size() && std::isxdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
      text.replace(begin, end - begin, "N");
    }
  }
  return text;
}

bool has_warning(const json::object& result, std::string_view about) {
  const json::array* warnings = get_array(result, "warnings");
  return warnings != nullptr && std::ranges::any_of(*warnings, [&](const json::value& warning) {
           return std::string_view(warning.as_string()).find(about) != std::string_view::npos;
         });
}

}  // namespace

Requests::PendingPtr Requests::add(std::string verb, std::vector<std::string> datasets) {
  auto pending = std::make_shared<Pending>();
  pending->verb = std::move(verb);
  pending->datasets = std::move(datasets);
  pending->from = scene_.time.now();
  pending->faults = scene_.fate.faulty;
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
    before.generations = generations_on_drive(name).size();
    before.is_current = is_current(name);
    before.joined = {pending->from, before.is_mounted};
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
  request.caller = {0, 0, true, true};
  json::array names;
  for (const std::string& name : wish.datasets) names.emplace_back(name);
  request.body["datasets"] = std::move(names);
  if (wish.is_prefetch) request.body["prefetch"] = true;
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
  workers::Call call;
  call.verb = "copy";
  call.subject = dataset;
  call.request = {{"from", scene_.sources.at(dataset)->place().path.native()},
                  {"to", copied_to(dataset).native()},
                  {"verify", pending->is_verified}};
  workers::Cancellation never;
  const auto copied = co_await daemon.runner().run(std::move(call), never);
  ended(pending, copied);
}

void Requests::cancel(std::size_t number) {
  const PendingPtr pending = pending_[number % pending_.size()];
  if (!pending->job) return;
  scene_.tell("the user cancels " + pending->verb + " of " + list_of(pending->datasets));
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
  for (const PendingPtr& pending : pending_) names.push_back(pending->verb + " of " + list_of(pending->datasets));
  return join(names, ", ");
}

void Requests::ended(const PendingPtr& pending, const Result<json::object>& result) {
  std::erase(pending_, pending);
  const std::string what = pending->verb + " of " + list_of(pending->datasets);
  scene_.tell("  " + what + (result ? " has succeeded" : " has failed: " + in_words(result.error())));
  for (const std::string& name : pending->datasets)
    results_[pending->verb + " " + name] = result ? "ok" : in_words(result.error());
  if (!result) check_error(*pending, result.error());
  if (pending->verb == "verify") verified(*pending, result);
  if (!result) return;
  if (pending->verb == "stage") {
    for (const json::value& dataset : *get_array(*result, "datasets")) staged(*pending, dataset.as_object());
  } else if (pending->verb == "copy") {
    const std::string& name = pending->datasets.front();
    Delivery delivery{name, copied_to(name), pending->from, scene_.time.now(), pending->before.at(name).joined,
                      "copy"};
    delivery.was_mounted = pending->before.at(name).is_mounted;
    delivery.is_verified = pending->is_verified;
    delivery.may_lack_attributes = has_warning(*result, "attributes");
    check_delivery(scene_, delivery);
  }
}

void Requests::staged(const Pending& pending, const json::object& dataset) {
  const std::string name = get_string(dataset, "name").value_or("");
  const Before& before = pending.before.at(name);
  Delivery delivery{name,          get_string(dataset, "path").value_or(""), pending.from, scene_.time.now(),
                    before.joined, "stage"};
  delivery.is_leased = pending.wish.holder == StageWish::Holder::Job;
  delivery.was_mounted = before.is_mounted;
  delivery.was_known_before = before.is_known;
  delivery.may_lack_attributes = has_warning(dataset, "attributes");
  check_delivery(scene_, delivery);
  check_copied_again(pending, dataset);
  check_evicted(pending, dataset);
  uses_.note_staged(name);
  const Source& source = *scene_.sources.at(name);
  const auto generation = static_cast<std::uint64_t>(get_int(dataset, "generation").value_or(0));
  // If the source changed meanwhile, the copy may be of the state before.
  const bool is_stable = before.version == source.version() && before.is_mounted;
  scene_.last_good[name] = {delivery.path, generation, is_stable ? source.version() : 0,
                            Drives::used_below(generation_folder(name, generation)),
                            scene_.trouble.catalogs_lost};
  if (before.is_mounted) scene_.known.insert(name);
  printed_.push_back({name, delivery.path});
  begin_use(pending, dataset);
}

// Nothing changed in the source, and a good copy was there: nothing is to be copied.
void Requests::check_copied_again(const Pending& pending, const json::object& dataset) {
  const std::string name = get_string(dataset, "name").value_or("");
  const Before& before = pending.before.at(name);
  const bool is_calm = pending.is_alone && !pending.was_troubled && pending.faults == scene_.fate.faulty && before.is_mounted &&
                       before.version == scene_.sources.at(name)->version();
  if (!is_calm || !before.is_current || get_string(dataset, "served_from") != "copied") return;
  if (!scene_.rot.below(generation_folder(name, before.newest), SteadyTime::max()).empty()) return;
  scene_.note(Rarity::Usual, "needless-copy", "stage of " + name + " made another copy, although its source is as it was");
}

// A superseded generation makes way before a current one.
void Requests::check_evicted(const Pending& pending, const json::object& dataset) {
  const json::array* evicted = get_array(dataset, "evicted");
  if (evicted == nullptr) return;
  for (const json::value& one : *evicted) {
    const std::string name = get_string(one.as_object(), "name").value_or("");
    scene_.tell("  " + name + " was evicted for it");
    const auto good = scene_.last_good.find(name);
    const bool is_alone = pending.is_alone && !pending.was_troubled && pending.faults == scene_.fate.faulty;
    if (good == scene_.last_good.end() || pending.before.at(name).generations < 2 || !is_alone) continue;
    const Bytes used = used_by_cache(), capacity = scene_.config.cache.capacity.bytes;
    const Bytes left = capacity == 0 ? Bytes{UINT64_MAX} : capacity - std::min(capacity, used);
    const Bytes free = std::min(left, Drives::free_on(places::kDrive));
    if (good->second.bytes != 0 && free >= good->second.bytes)
      scene_.note(Rarity::Rare, "current-evicted", "the current copy of " + name +
                                            " was evicted, although deleting its superseded one was enough");
  }
}

void Requests::begin_use(const Pending& pending, const json::object& dataset) {
  if (pending.wish.holder == StageWish::Holder::None) return;
  const std::string name = get_string(dataset, "name").value_or("");
  const auto lease = get_string(dataset, "lease");
  if (!lease) {
    scene_.note(Rarity::Common, "run-without-lease", "run of " + name + " goes on without a lease");
    return;
  }
  Use& use = uses_.begin(name, get_string(dataset, "path").value_or(""));
  use.lease = *lease;
  use.process = pending.process;
  scene_.tell("  " + use.name + " begins to use it");
}

void Requests::verified(const Pending& pending, const Result<json::object>& result) {
  const std::string& name = pending.datasets.front();
  const std::uint64_t newest = newest_generation(name);
  if (newest == 0 || newest != pending.before.at(name).newest) return;
  const auto folder = generation_folder(name, newest);
  if (result) {
    if (!scene_.rot.below(folder, pending.from).empty())
      scene_.violate("verify-missed-damage", "verify of " + name + " found no damage, and there is some");
    return;
  }
  if (result.error().kind != Errc::Mismatch) return;
  const auto damaged = scene_.rot.below(folder, SteadyTime::max());
  if (damaged.empty() && pending.faults == scene_.fate.faulty)
    scene_.violate("verify-false-alarm", "verify of " + name + " found damage where there is none");
  scene_.rot.learn(damaged);
}

void Requests::check_error(const Pending& pending, const Error& error) {
  for (const char* untrue : {"another file system was mounted there", "not the folder that the catalog knows"}) {
    if (error.what.find(untrue) != std::string::npos)
      scene_.violate("untrue-error", pending.verb + " says: " + in_words(error));
  }
  const std::string& name = pending.datasets.front();
  const Before& before = pending.before.at(name);
  const bool is_served = before.is_current && before.is_mounted &&
                         before.version == scene_.sources.at(name)->version() &&
                         pending.faults == scene_.fate.faulty && is_current(name);
  const bool is_asked = error.kind != Errc::Cancelled && error.kind != Errc::Refused;
  if (pending.verb == "stage" && pending.datasets.size() == 1 && pending.is_only_state_full &&
      scene_.trouble.is_state_full && is_served && is_asked)
    scene_.note(Rarity::Rare, "cached-not-served", "the state folder is full, and stage of " + name +
                                            ", which is cached, fails: " + in_words(error));
}

}  // namespace spark::histories::copies
