#include <signal.h>

#include <cstdio>

#include "tests/histories/engine/program.hpp"
#include "tests/histories/outputs/world.hpp"

int main(int argc, char** argv) {
  using namespace spark::histories;
  if (const auto ready = prepare_disks(); !ready) {
    (void)std::fprintf(stderr, "histories of outputs: %s\n", ready.error().message().c_str());
    return 2;
  }
  Area area;
  area.name = "outputs";
  area.actions = OutputsWorld::actions();
  area.longest = 30;
  area.make = [](std::uint64_t seed, const Story& story) {
    return std::make_unique<OutputsWorld>(seed, story);
  };
  return history_main(area, argc, argv);
}
