// Performs workers' verbs for the simulated hosts: the real code, on the hosts' real small folders.
#pragma once

#include <string>

#include "tests/histories/outputs/oracles.hpp"
#include "tests/histories/outputs/runner.hpp"
#include "tests/histories/outputs/scene.hpp"

namespace spark::histories {

class Workers {
 public:
  // Both outlive it.
  Workers(Scene& scene, Oracles& oracles) : scene_(scene), oracles_(oracles) {}

  HistoryRunner::Hooks hooks_for(Machine& machine);

 private:
  Answer perform(Machine& machine, const workers::Call& call);
  Answer perform_watched(Machine& machine, const workers::Call& call);
  Answer perform_as(Machine& machine, const workers::Call& call);

  Scene& scene_;
  Oracles& oracles_;
};

}  // namespace spark::histories
