// What users and operators ask of the daemon, and the time that passes.
#pragma once

#include "tests/histories/outputs/hosts.hpp"
#include "tests/histories/outputs/scene.hpp"

namespace spark::histories {

class RequestActions {
 public:
  // All outlive it.
  RequestActions(Scene& scene, Hosts& hosts) : scene_(scene), hosts_(hosts) {}

  void ask_latest(const Dice& dice);
  void send_newest(const Dice& dice);
  void send_by_hand(const Dice& dice);
  void reload(const Dice& dice);
  void wait(const Dice& dice);
  void ask_latest_of(Machine& machine);

 private:
  Scene& scene_;
  Hosts& hosts_;
  unsigned exports_ = 0;
};

}  // namespace spark::histories
