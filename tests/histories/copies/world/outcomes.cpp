// What a request was told in the end, compared with what is true.
#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/text.hpp"
#include "tests/histories/copies/host/copies_on_drive.hpp"
#include "tests/histories/copies/host/places.hpp"
#include "tests/histories/copies/world/requests.hpp"

namespace spark::histories::copies {
namespace {

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

void Requests::ended(const PendingPtr& pending, const Result<json::object>& result) {
  std::erase(pending_, pending);
  const std::string what = pending->verb + " of " + names_in(pending->datasets);
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
    Delivery delivery{
        name, copied_to(name), pending->from, scene_.time.now(), pending->before.at(name).joined, "copy"};
    delivery.was_mounted = pending->before.at(name).is_mounted;
    delivery.is_verified = pending->is_verified;
    delivery.may_lack_attributes = has_warning(*result, "attributes");
    check_delivery(scene_, delivery);
  }
}

void Requests::staged(const Pending& pending, const json::object& dataset) {
  const std::string name = get_string(dataset, "name").value_or("");
  const Before& before = pending.before.at(name);
  Delivery delivery{name,          get_string(dataset, "path").value_or(""),
                    pending.from,  scene_.time.now(),
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
  // If the source changed meanwhile, the copy may be of the state before. A file that was touched since an
  // earlier request had walked has right bytes, and is copied again all the same.
  const auto folder = generation_folder(name, generation);
  const bool is_stable = before.joined.version == source.version() && before.is_mounted &&
                         (!unread_.contains(name) || unread_.at(name) != generation);
  scene_.last_good[name] = {delivery.path, generation, is_stable ? source.version() : 0,
                            Drives::sum_of(Drives::files_below({folder})) + counted_for_folders(folder),
                            scene_.trouble.catalogs_lost};
  if (before.is_mounted) scene_.known.insert(name);
  printed_.push_back({name, delivery.path});
  begin_use(pending, dataset);
}

// Nothing changed in the source, and a good copy was there: nothing is to be copied.
void Requests::check_copied_again(const Pending& pending, const json::object& dataset) {
  const std::string name = get_string(dataset, "name").value_or("");
  const Before& before = pending.before.at(name);
  const bool is_calm = pending.is_alone && !pending.was_troubled && pending.faults == scene_.fate.faulty &&
                       before.is_mounted && before.version == scene_.sources.at(name)->version();
  if (!is_calm || !before.is_current || get_string(dataset, "served_from") != "copied") return;
  if (!scene_.rot.below(generation_folder(name, before.newest), SteadyTime::max()).empty()) return;
  scene_.note(Rarity::Usual, "needless-copy",
              "stage of " + name + " made another copy, although its source is as it was");
}

// A superseded generation makes way before a current one, unless that is damaged.
void Requests::check_evicted(const Pending& pending, const json::object& dataset) {
  const json::array* evicted = get_array(dataset, "evicted");
  if (evicted == nullptr) return;
  for (const json::value& one : *evicted) {
    const std::string name = get_string(one.as_object(), "name").value_or("");
    scene_.tell("  " + name + " was evicted for it");
    const auto good = scene_.last_good.find(name);
    const bool is_alone = pending.is_alone && !pending.was_troubled && pending.faults == scene_.fate.faulty;
    const Before& before = pending.before.at(name);
    if (good == scene_.last_good.end() || before.generations < 2 || before.is_damaged || !is_alone) continue;
    // The older copies of what was staged had to stay until the new ones were ready.
    auto files = files_of_cache();
    for (const std::string& staged : pending.datasets) files.merge(std::map(pending.before.at(staged).files));
    const Bytes used =
        Drives::sum_of(files) + counted_for_folders(std::filesystem::path(places::kDrive) / "data");
    const Bytes capacity = scene_.config.cache.capacity.bytes;
    const Bytes left = capacity == 0 ? Bytes{UINT64_MAX} : capacity - std::min(capacity, used);
    const Bytes free = std::min(left, Drives::free_on(places::kDrive));
    if (good->second.bytes != 0 && free >= good->second.bytes)
      scene_.note(
          Rarity::Rare, "current-evicted",
          "the current copy of " + name + " was evicted, although deleting its superseded one was enough");
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
  // The daemon tries twice before it goes on, and then once a minute.
  if (scene_.fate.faulty_leases - pending.lease_faults > 1) use.can_be_recorded = false;
  scene_.tell("  " + use.name + " begins to use it");
}

void Requests::verified(const Pending& pending, const Result<json::object>& result) {
  const std::string& name = pending.datasets.front();
  const std::uint64_t newest = newest_generation(name);
  // Another one may be published while it runs: what it says of that one's files counts as well.
  const bool is_of_newest = newest == pending.before.at(name).newest;
  if (newest == 0 || (result && !is_of_newest)) return;
  const auto folder = generation_folder(name, newest);
  if (result) {
    if (!scene_.rot.below(folder, pending.from).empty())
      scene_.violate("verify-missed-damage", "verify of " + name + " found no damage, and there is some");
    return;
  }
  if (result.error().kind != Errc::Mismatch) return;
  // The catalog could not take the newest one, as with a full state folder, and an older one was verified.
  const std::string data = "/data/" + folder.parent_path().filename().native() + "/";
  const std::size_t at = result.error().what.find(data);
  const std::string said = at == std::string::npos ? "" : result.error().what.substr(at + data.size());
  const std::uint64_t named = std::strtoull(said.c_str() + said.starts_with('.'), nullptr, 10);
  if (said.empty() ? !is_of_newest : named != newest) return;
  const auto damaged = scene_.rot.below(folder, SteadyTime::max());
  if (damaged.empty() && pending.faults == scene_.fate.faulty)
    scene_.violate("verify-false-alarm", "verify of " + name + " found damage where there is none");
  // Its drive could not be read then: it is copied again.
  if (damaged.empty()) {
    scene_.last_good[name].version = 0;
    unread_[name] = newest;
  }
  scene_.rot.learn(damaged, scene_.time.now());
}

void Requests::check_error(const Pending& pending, const Error& error) {
  for (const char* untrue : {"another file system was mounted there", "not the folder that the catalog "}) {
    if (error.what.find(untrue) != std::string::npos)
      scene_.violate("untrue-error", pending.verb + " says: " + in_words(error));
  }
  const std::string& name = pending.datasets.front();
  const Before& before = pending.before.at(name);
  const bool is_served = before.is_current && before.is_mounted &&
                         before.version == scene_.sources.at(name)->version() &&
                         before.joined.faults == scene_.fate.faulty && is_current(name);
  // A copy that a user evicts is not served any more.
  const bool is_evicting = std::ranges::any_of(pending_, [&](const PendingPtr& other) {
    return other->verb == "evict" && other->datasets.front() == name;
  });
  const bool is_asked = error.kind != Errc::Cancelled && error.kind != Errc::Refused && !is_evicting;
  // A worker that the drive of the state folder holds up in a change of the catalog has it locked.
  const bool is_locked = error.what.find("database is locked") != std::string::npos &&
                         scene_.fate.state_held_until >= before.joined.from;
  if (!is_locked && pending.verb == "stage" && pending.datasets.size() == 1 && pending.is_only_state_full &&
      scene_.trouble.is_state_full && is_served && is_asked)
    scene_.note(
        Rarity::Rare, "cached-not-served",
        "the state folder is full, and stage of " + name + ", which is cached, fails: " + in_words(error));
}

}  // namespace spark::histories::copies
