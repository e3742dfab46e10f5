// What users and their programs do.
#include <algorithm>

#include "tests/histories/copies/host/copies_on_drive.hpp"
#include "tests/histories/copies/world/world.hpp"

namespace spark::histories::copies {
namespace {

std::vector<std::string> some_datasets(CopiesWorld& world, std::uint32_t die, bool many) {
  std::vector<std::string> names{world.source(die).name()};
  for (std::uint32_t i = 1; many && i < 3; ++i) {
    const std::string& name = world.source(8 * (die / 64 + i) + 7).name();
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

void stage(CopiesWorld& world, const Step& step) {
  StageWish wish{some_datasets(world, step.dice[0], step.dice[1] % 8 == 0)};
  if (step.dice[1] % 16 == 1) wish.lease = std::chrono::seconds(1 + step.dice[2] % 3'600);
  world.scene().tell("a user stages " + wish.datasets.front() +
                     (wish.datasets.size() > 1 ? " and others" : ""));
  world.requests().stage(world.daemon(), wish);
}

// On a busy host, where some of the workers are held up for a while.
void stage_all_at_once(CopiesWorld& world, const Step& step) {
  world.scene().tell("users stage everything at the same time");
  for (std::uint32_t i = 0; i < step.dice[0] % 4; ++i) {
    const std::uint32_t die = step.dice[1] >> (10 * i);
    const Fault fault{.kind = Fault::Kind::Pause, .nth = 1 + die / 8 % (1U << (1 + die % 8))};
    world.scene().fate.planned.push_back({"stage", fault});
    world.scene().tell("  (a worker for stage: " + in_words(fault) + ")");
  }
  for (const auto& [name, source] : world.scene().sources)
    world.requests().stage(world.daemon(), StageWish{{name}});
}

void run(CopiesWorld& world, const Step& step) {
  StageWish wish{some_datasets(world, step.dice[0], step.dice[1] % 8 == 0), StageWish::Holder::Job};
  world.scene().tell("a user runs a job with " + wish.datasets.front());
  world.requests().stage(world.daemon(), wish);
}

void run_in_container(CopiesWorld& world, const Step& step) {
  StageWish wish{some_datasets(world, step.dice[0], false), StageWish::Holder::Unseen};
  world.scene().tell("a user runs a job with " + wish.datasets.front() +
                     " in a container, whose processes the daemon can't see");
  world.requests().stage(world.daemon(), wish);
}

void prefetch(CopiesWorld& world, const Step& step) {
  StageWish wish{some_datasets(world, step.dice[0], step.dice[1] % 4 == 0)};
  wish.is_prefetch = true;
  if (step.dice[1] % 3 == 1) wish.by = std::chrono::seconds(1 + step.dice[2] % 200);
  world.scene().tell("a user prefetches " + wish.datasets.front());
  world.requests().stage(world.daemon(), wish);
}

void verify(CopiesWorld& world, const Step& step) {
  const std::string& name = world.source(step.dice[0]).name();
  world.scene().tell("a user verifies " + name);
  world.requests().verify(world.daemon(), name);
}

void evict(CopiesWorld& world, const Step& step) {
  const std::string& name = world.source(step.dice[0]).name();
  world.scene().tell("a user evicts " + name);
  world.requests().evict(world.daemon(), name);
}

void copy(CopiesWorld& world, const Step& step) {
  const std::string& name = world.source(step.dice[0]).name();
  const bool verifies = step.dice[1] % 2 == 0;
  world.scene().tell("a user copies " + name + (verifies ? " with --verify" : "") + " to a folder");
  world.requests().copy(world.daemon(), name, verifies);
}

void cancel(CopiesWorld& world, const Step& step) {
  if (world.requests().running() > 0) world.requests().cancel(step.dice[0]);
}

// A program that got a path of `stage` opens some of its files.
void open_files(CopiesWorld& world, const Step& step) {
  const auto& printed = world.requests().printed();
  if (printed.empty()) return;
  const std::size_t last = std::min<std::size_t>(printed.size(), 3);
  const Printed& one = printed[printed.size() - 1 - step.dice[0] % last];
  std::error_code error;
  if (!std::filesystem::is_directory(one.path, error)) return;  // it was never used, so it may be gone
  Use& use = world.uses().begin(one.dataset, one.path);
  world.uses().open_files(use, 1 + step.dice[1] % 3);
  world.scene().tell(use.name + " opens files of " + one.dataset + " at the path that `stage` printed");
  if (use.open.empty()) world.uses().end(world.uses().all().size() - 1);
}

void end_job(CopiesWorld& world, const Step& step) {
  auto& all = world.uses().all();
  if (all.empty()) return;
  const std::size_t number = step.dice[0] % all.size();
  world.scene().tell(all[number].name + " ends");
  world.uses().end(number);
}

void wait(CopiesWorld& world, const Step& step) {
  world.scene().tell("some time passes");
  world.scene().time.run_for(std::chrono::seconds(step.dice[0] % 1'000));
}

}  // namespace

std::vector<StepRow> user_steps() {
  return {{"stage", 14, stage},      {"stage-all-at-once", 5, stage_all_at_once},
          {"run", 10, run},          {"run-in-container", 1, run_in_container},
          {"prefetch", 3, prefetch}, {"verify", 9, verify},
          {"evict", 4, evict},       {"copy", 5, copy},
          {"cancel", 2, cancel},     {"open-files", 5, open_files},
          {"end-job", 5, end_job},   {"wait", 4, wait}};
}

}  // namespace spark::histories::copies
