// The simulated hosts as all steps use them: their daemons start, and time passes.
#pragma once

#include "tests/histories/outputs/daemon.hpp"
#include "tests/histories/outputs/oracles.hpp"
#include "tests/histories/outputs/scene.hpp"
#include "tests/histories/outputs/workers.hpp"

namespace spark::histories {

using Dice = std::array<std::uint32_t, 4>;

class Hosts {
 public:
  // It outlives this.
  explicit Hosts(Scene& scene) : scene_(scene) {}

  // Their drives and the volume, empty.
  void add(std::size_t count);
  Machine& chosen(std::uint32_t die) { return *scene_.machines[die % scene_.machines.size()]; }
  void start(Machine& machine);
  // In parts: what is shown is compared with the truth at many moments.
  void run_for(Duration duration);
  Oracles& oracles() { return oracles_; }

 private:
  Scene& scene_;
  Oracles oracles_{scene_};
  Workers workers_{scene_, oracles_};
};

}  // namespace spark::histories
