// The promises about the state of the cache, and what must hold once nothing is wrong any more.
#include <algorithm>

#include "base/text.hpp"
#include "tests/histories/copies/host/copies_on_drive.hpp"
#include "tests/histories/copies/host/places.hpp"
#include "tests/histories/copies/world/world.hpp"

namespace spark::histories::copies {
namespace {

constexpr std::chrono::minutes kLongest{10};  // that a request takes without trouble
constexpr std::chrono::minutes kForgiven{3};  // after a trouble an old error may still be shown

// What can't be read is not counted, and `ls` says why.
bool is_told(const json::object& list) {
  return std::ranges::any_of(*get_array(list, "datasets"), [](const json::value& value) {
    const json::object& row = value.as_object();
    return get_string(row, "state") == "failed" && get_int(row, "generation") == 0 &&
           !get_string(row, "reason").value_or("").empty();
  });
}

}  // namespace

void CopiesWorld::check_list() {
  const auto list = daemon_->datasets().list();
  if (!list) {
    // On a full drive no new cache can be made.
    const bool is_new =
        !std::filesystem::exists(std::filesystem::path(places::kDrive) / ".spark-stage-cache");
    if (is_new && scene_.trouble.is_drive_full) return;
    // A daemon that starts opens the cache first, and tries again after a failure.
    if (scene_.is_calm_for(kForgiven) && list.error().kind != Errc::Unavailable)
      scene_.note(Rarity::Common, "ls-old-error",
                  "nothing is wrong with the catalog, and ls says: " + list.error().what);
    return;
  }
  for (const json::value& value : *get_array(*list, "datasets")) {
    const json::object& row = value.as_object();
    const std::string name = get_string(row, "name").value_or("");
    const auto path = get_string(row, "path");
    if (get_string(row, "state") != "ready" || !path) continue;
    std::error_code error;
    if (!std::filesystem::is_directory(*path, error))
      scene_.violate("ls-untrue", "ls shows " + name + " as ready, and its path leads nowhere");
  }
}

void CopiesWorld::check_accounting() {
  const json::value usage = daemon_->datasets().cache();
  const auto list = daemon_->datasets().list();
  if (usage.is_null() || !scene_.is_calm_for(kForgiven) || (list && is_told(*list))) return;
  const auto shown = static_cast<Bytes>(get_int(usage.as_object(), "used_bytes").value_or(0));
  const Bytes used = used_by_cache();
  // Manifests and journals are not counted: a page each.
  const Bytes uncounted = 64 * kKiB;
  if (shown + uncounted < used || used + uncounted < shown)
    scene_.note(
        Rarity::Rare, "accounting",
        "status shows " + format_bytes(shown) + " used, and the cache's drive has " + format_bytes(used));
}

void CopiesWorld::end_troubles() {
  scene_.fate.planned.clear();
  for (const auto& [name, source] : scene_.sources) {
    if (scene_.drives.mounted(source->place().disk) == Mounted::Right) continue;
    requests_.note_unmounted(source->place().disk);
    scene_.drives.mount(source->place().disk, Mounted::Right);
  }
  Drives::unfill(places::kState);
  Drives::unfill(places::kDrive);
  if (scene_.trouble.is_catalog_locked) catalog_.unlock();
  if (scene_.trouble.is_catalog_damaged) repair_catalog();
  requests_.note_trouble();
  scene_.trouble_now();
  scene_.trouble.is_state_full = scene_.trouble.is_drive_full = false;
  scene_.trouble.is_catalog_damaged = scene_.trouble.is_catalog_locked = false;
  end_jobs();
  scene_.config.cache.capacity.bytes = 0;
  daemon_->datasets().config_changed();
}

// With what they hold: a lease for a time may last for an hour, in which its copy is not evicted. Its user
// sees it in `ls`, and releases it.
void CopiesWorld::end_jobs() {
  while (!uses_.all().empty()) uses_.end(0);
  datasets::Leases& leases = daemon_->datasets().leases();
  std::vector<std::string> timed;
  for (const auto& [id, lease] : leases.all())
    if (lease.is_staged() && lease.expires && !lease.is_soft) timed.push_back(id);
  for (const std::string& id : timed) {
    scene_.tell("a user releases the lease on " + leases.all().at(id).dataset);
    (void)leases.release(id);
  }
}

bool CopiesWorld::finish_requests(const char* doing) {
  scene_.time.run_until([this] { return requests_.running() == 0; }, kLongest);
  if (requests_.running() == 0) return true;
  scene_.violate("never-ends", std::string(doing) + ": " + requests_.names());
  return false;
}

void CopiesWorld::stage_and_verify(const std::string& dataset) {
  for (const bool is_last : {false, true}) {
    requests_.stage(*daemon_, StageWish{{dataset}});
    if (!finish_requests("with nothing wrong")) return;
    std::string staged = requests_.last_result("stage", dataset);
    // The copy is of another disk, which was mounted there: a person looks, and accepts the right one.
    if (staged.find("another file system") != std::string::npos) {
      requests_.stage(*daemon_, StageWish{.datasets = {dataset}, .accepts_source = true});
      if (!finish_requests("with nothing wrong")) return;
      staged = requests_.last_result("stage", dataset);
    }
    if (staged != "ok") return scene_.violate("cannot-be-staged", dataset + ": " + staged);
    const auto list = daemon_->datasets().list();
    if (!list) return scene_.violate("never-opened", "long after all troubles ls says: " + list.error().what);
    requests_.verify(*daemon_, dataset);
    if (!finish_requests("with nothing wrong")) return;
    const std::string verified = requests_.last_result("verify", dataset);
    if (verified == "ok" || scene_.violation) return;
    if (is_last) scene_.violate("damage-stays", "verify of " + dataset + ", just staged: " + verified);
  }
}

std::optional<Violation> CopiesWorld::settle() {
  scene_.tell("all troubles end, and all jobs; ten minutes pass");
  scene_.fate.dice.seed(1);
  end_troubles();
  scene_.time.run_for(kLongest);
  uses_.check();
  if (requests_.running() > 0)
    scene_.violate("never-ends", "ten minutes after all troubles: " + requests_.names());
  end_jobs();  // that have begun since
  scene_.time.run_for(std::chrono::minutes(1));
  if (!scene_.violation) check_list();
  for (const auto& [name, source] : scene_.sources) {
    if (scene_.violation) break;
    scene_.tell("finally " + name + " is staged and verified");
    stage_and_verify(name);
  }
  scene_.time.run_for(std::chrono::minutes(1));
  if (!scene_.violation) check_list();
  if (!scene_.violation) check_accounting();
  return scene_.violation ? scene_.violation : scene_.noted;
}

}  // namespace spark::histories::copies
