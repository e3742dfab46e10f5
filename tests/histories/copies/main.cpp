// Random histories of the cache of one host: docs/testing.md.
#include <spdlog/spdlog.h>
#include <sys/prctl.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>

#include "tests/histories/copies/host/drives.hpp"
#include "tests/histories/copies/world/world.hpp"
#include "tests/histories/engine/program.hpp"

namespace {

using namespace spark::histories;

Area area() {
  Area area;
  area.name = "copies";
  for (const copies::StepRow& row : copies::all_steps()) area.actions.push_back({row.action, row.weight});
  area.longest = 30;
  area.make = [](std::uint64_t seed, const Story& story) -> std::unique_ptr<World> {
    return std::make_unique<copies::CopiesWorld>(seed, story);
  };
  return area;
}

}  // namespace

int main(int argc, char** argv) {
  // With SPARK_STAGE_DEBUG in the environment, the daemon's log is between the lines of the story.
  if (std::getenv("SPARK_STAGE_DEBUG") == nullptr) spdlog::default_logger()->set_level(spdlog::level::off);
  ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // each worker would clear megabytes
  try {
    copies::enter_own_namespace();
    return history_main(area(), argc, argv);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 2;
  }
}
