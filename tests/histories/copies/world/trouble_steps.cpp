// What goes wrong on the host: drives, the catalog, workers, the daemon, the clock.
#include <errno.h>

#include <array>
#include <utility>

#include "tests/histories/copies/host/copies_on_drive.hpp"
#include "tests/histories/copies/host/places.hpp"
#include "tests/histories/copies/world/world.hpp"

namespace spark::histories::copies {
namespace {

void rot(CopiesWorld& world, const Step& step) {
  const std::string dataset = "/" + world.source(step.dice[2]).name();
  auto files = copied_files();
  std::erase_if(files, [&](const auto& file) { return file.native().find(dataset) == std::string::npos; });
  if (files.empty()) return;
  const auto& file = files[step.dice[0] % files.size()];
  Scene& scene = world.scene();
  scene.tell("a bit flips in " + file.lexically_relative(places::kDrive).native());
  scene.rot.flip(file, step.dice[1], scene.time.now());
}

// The next worker with one of these verbs has trouble with a call.
void fault(CopiesWorld& world, const Step& step) {
  static constexpr std::array kVerbs = {"stage", "stage", "stage", "stage",   "verify",
                                        "evict", "copy",  "lease", "catalog", "recover"};
  static constexpr std::array kErrors = {EIO, EIO, ENOSPC, EDQUOT, EMFILE};
  Fate& fate = world.scene().fate;
  const char* verb = kVerbs[step.dice[0] % kVerbs.size()];
  Fault fault;
  fault.kind = static_cast<Fault::Kind>(1 + step.dice[1] % 3);
  fault.drive = static_cast<Drive>(step.dice[1] / 3 % 4);
  fault.calls = static_cast<Calls>(step.dice[1] / 12 % 7);
  // Each order of magnitude is as likely as another.
  fault.nth = 1 + step.dice[2] / 8 % (1U << (1 + step.dice[2] % 8));
  fault.error = kErrors[step.dice[1] / 84 % kErrors.size()];
  fault.lasts = step.dice[1] / 420 % 3 == 0;
  world.scene().tell("the next worker for " + std::string(verb) + " will have trouble: " + in_words(fault));
  fate.planned.push_back({verb, fault});
}

void restart(CopiesWorld& world, const Step& step) {
  world.scene().tell(step.dice[0] % 2 == 0 ? "the daemon is killed and started again"
                                           : "the daemon is killed, and started again a minute later");
  world.restart_daemon();
}

void set_clock(CopiesWorld& world, const Step& step) {
  const auto hours = static_cast<int>(step.dice[0] % 145) - 72;
  world.scene().tell("the clock jumps by " + std::to_string(hours) + " hours");
  world.scene().time.shift_wall(std::chrono::hours(hours));
}

// Requests in progress and answers of the next minutes may be errors.
void begin_trouble(CopiesWorld& world) {
  world.scene().trouble_now();
  world.requests().note_trouble();
  ++world.scene().fate.faulty;
  ++world.scene().fate.faulty_leases;
}

// Some troubles end by themselves, others when their step comes again, or with the history.
void end_later(CopiesWorld& world, const Step& step, void (*end)(CopiesWorld& world)) {
  if (step.dice[2] % 3 == 0) return;
  const SteadyTime then = world.scene().time.now() + std::chrono::seconds(step.dice[2] / 3 % 200);
  world.scene().time.call_at(then, [&world, end] { end(world); });
}

void end_full_state(CopiesWorld& world) {
  Scene& scene = world.scene();
  if (!std::exchange(scene.trouble.is_state_full, false)) return;
  begin_trouble(world);
  scene.tell("the state folder has space again");
  Drives::unfill(places::kState);
}

void fill_state(CopiesWorld& world, const Step& step) {
  Scene& scene = world.scene();
  if (scene.trouble.is_state_full) return end_full_state(world);
  begin_trouble(world);
  scene.tell("the drive of the state folder is full");
  scene.trouble.is_state_full = true;
  Drives::fill(places::kState, step.dice[0] % 3 * 4 * kKiB);
  end_later(world, step, end_full_state);
}

void end_full_drive(CopiesWorld& world) {
  Scene& scene = world.scene();
  if (!std::exchange(scene.trouble.is_drive_full, false)) return;
  begin_trouble(world);
  scene.tell("the other data on the cache's drive is deleted");
  Drives::unfill(places::kDrive);
}

void fill_drive(CopiesWorld& world, const Step& step) {
  Scene& scene = world.scene();
  if (scene.trouble.is_drive_full) return end_full_drive(world);
  begin_trouble(world);
  scene.tell("other data fills the cache's drive");
  scene.trouble.is_drive_full = true;
  Drives::fill(places::kDrive, step.dice[0] % 200 * kKiB);
  end_later(world, step, end_full_drive);
}

void change_capacity(CopiesWorld& world, const Step& step) {
  Scene& scene = world.scene();
  // None, any, or just what is used now and a little more.
  const Bytes least = step.dice[0] % 3 == 1 ? used_by_cache() : 100 * kKiB;
  const Bytes more = step.dice[1] % (step.dice[0] % 3 == 1 ? 100 : 400) * kKiB;
  scene.config.cache.capacity.bytes = step.dice[0] % 3 == 0 ? 0 : least + more;
  scene.tell("the cache's capacity is set to " + format_bytes(scene.config.cache.capacity.bytes));
  world.daemon().datasets().config_changed();
}

// Only at rest: what a repair puts back is the catalog of that time.
bool is_at_rest(CopiesWorld& world) {
  return CatalogFile::exists() && world.daemon().is_idle() && world.scene().trouble.has_catalog();
}

void lose_catalog(CopiesWorld& world, const Step& /*step*/) {
  if (!is_at_rest(world)) return;
  Scene& scene = world.scene();
  begin_trouble(world);
  scene.tell("the catalog is moved away, and the daemon started again");
  CatalogFile::lose();
  ++scene.trouble.catalogs_lost;
  scene.rot.forget();
  scene.known.clear();
  world.restart_daemon();
}

void repair_catalog(CopiesWorld& world) {
  Scene& scene = world.scene();
  if (!std::exchange(scene.trouble.is_catalog_damaged, false)) return;
  begin_trouble(world);
  world.repair_catalog();
}

void damage_catalog(CopiesWorld& world, const Step& step) {
  Scene& scene = world.scene();
  if (scene.trouble.is_catalog_damaged) return repair_catalog(world);
  if (!is_at_rest(world)) return;
  begin_trouble(world);
  scene.tell("the catalog is damaged");
  scene.trouble.is_catalog_damaged = true;
  world.catalog().damage();
  end_later(world, step, repair_catalog);
}

void unlock_catalog(CopiesWorld& world) {
  Scene& scene = world.scene();
  if (!std::exchange(scene.trouble.is_catalog_locked, false)) return;
  begin_trouble(world);
  scene.tell("the other program has closed the catalog");
  world.catalog().unlock();
}

void lock_catalog(CopiesWorld& world, const Step& step) {
  Scene& scene = world.scene();
  if (scene.trouble.is_catalog_locked) return unlock_catalog(world);
  if (!is_at_rest(world)) return;
  begin_trouble(world);
  scene.tell("another program has the catalog locked");
  scene.trouble.is_catalog_locked = true;
  world.catalog().lock();
  end_later(world, step, unlock_catalog);
}

}  // namespace

std::vector<StepRow> trouble_steps() {
  return {{"rot", 8, rot},
          {"fault", 8, fault},
          {"restart", 2, restart},
          {"set-clock", 1, set_clock},
          {"fill-state", 1, fill_state},
          {"fill-drive", 2, fill_drive},
          {"change-capacity", 3, change_capacity},
          {"lose-catalog", 1, lose_catalog},
          {"damage-catalog", 1, damage_catalog},
          {"lock-catalog", 1, lock_catalog}};
}

}  // namespace spark::histories::copies
