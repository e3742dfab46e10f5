#include "tests/histories/copies/world/world.hpp"

#include <algorithm>

#include "tests/histories/copies/worker/simulated_system.hpp"

namespace spark::histories::copies {
namespace {

// How long after a step the next one comes.
Duration pause_after(const Step& step) {
  using std::chrono::milliseconds, std::chrono::seconds;
  const std::uint32_t die = step.dice[3];
  switch (die % 8) {
    case 0:
      return Duration(0);
    case 1:
    case 2:
      return milliseconds(die / 8 % 100);
    case 3:
    case 4:
      return milliseconds(die / 8 % 1'500);
    case 5:
    case 6:
      return milliseconds(die / 8 % 12'000);
    default:
      return seconds(die / 8 % 300);
  }
}

}  // namespace

CopiesWorld::CopiesWorld(std::uint64_t seed, const Story& story)
    : scene_(seed, story), uses_(scene_), requests_(scene_, uses_), numbers_(seed << 24) {
  scene_.fate.tell = [this](const std::string& verb, const std::string& what) {
    scene_.tell("  the worker for " + verb + ": " + what);
  };
  scene_.fate.hangs = [this](const std::string& verb) {
    scene_.violate("worker-hangs", "the worker for " + verb + " waits for something that has ended");
  };
  scene_.fate.crashed = [this](const std::string& verb, const std::string& how) {
    scene_.violate("worker-crashed", "the worker for " + verb + " had no fault that ends it; " + how);
  };
  daemon_ = std::make_unique<SimulatedDaemon>(scene_);
}

CopiesWorld::~CopiesWorld() {
  requests_.daemon_ended();
  daemon_.reset();
  simulated() = {};
}

std::vector<StepRow> all_steps() {
  std::vector<StepRow> all = user_steps();
  for (const auto& more : {source_steps(), trouble_steps()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

void CopiesWorld::take(const Step& step) {
  static const std::vector<StepRow> kSteps = all_steps();
  const auto row =
      std::ranges::find_if(kSteps, [&](const StepRow& one) { return step.action == one.action; });
  if (row == kSteps.end()) return;
  std::seed_seq seed(step.dice.begin(), step.dice.end());
  scene_.fate.dice.seed(seed);
  row->take(*this, step);
  scene_.time.run_for(pause_after(step));
}

// Mostly one, so that a history has more to say about it.
Source& CopiesWorld::source(std::uint32_t die) {
  auto found = scene_.sources.begin();
  std::advance(found, die % 8 < 5 ? scene_.favourite : die / 8 % scene_.sources.size());
  return *found->second;
}

void CopiesWorld::restart_daemon() {
  requests_.daemon_ended();
  uses_.daemon_ended();
  daemon_.reset();
  daemon_ = std::make_unique<SimulatedDaemon>(scene_);
}

// A database that is replaced below a program which has it open is damaged by that one when it closes it (see
// SQLite's "How To Corrupt"): docs/troubleshooting.md says to stop the daemon.
void CopiesWorld::repair_catalog() {
  const bool is_open = !daemon_->is_idle();
  scene_.tell(is_open ? "the daemon is stopped, the catalog repaired, and the daemon started again"
                      : "the catalog is repaired");
  if (is_open) restart_daemon();
  catalog_.repair();
}

std::optional<Violation> CopiesWorld::check() {
  uses_.check();
  const bool is_calm = daemon_->is_idle() && requests_.running() == 0 && scene_.trouble.has_catalog();
  if (is_calm) check_list();
  if (is_calm) check_accounting();
  return scene_.violation;
}

}  // namespace spark::histories::copies
