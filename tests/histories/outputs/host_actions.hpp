// What happens to hosts, their clocks and daemons, and to the volume.
#pragma once

#include "tests/histories/outputs/hosts.hpp"
#include "tests/histories/outputs/job_actions.hpp"
#include "tests/histories/outputs/scene.hpp"

namespace spark::histories {

class HostActions {
 public:
  // All outlive it.
  HostActions(Scene& scene, Hosts& hosts, JobActions& job_actions)
      : scene_(scene), hosts_(hosts), job_actions_(job_actions) {}

  void set_clock(const Dice& dice);
  void lose_volume(const Dice& dice);
  void return_volume(const Dice& dice);
  void fill_volume(const Dice& dice);
  void free_volume(const Dice& dice);
  void take_volume_over(const Dice& dice);
  void kill_daemon(const Dice& dice);
  void cut_power(const Dice& dice);
  void start_daemon(const Dice& dice);
  void doom_worker(const Dice& dice);
  void slow_worker(const Dice& dice);
  void note_volume(std::size_t host);  // it changed for that host now

 private:
  Scene& scene_;
  Hosts& hosts_;
  JobActions& job_actions_;
};

}  // namespace spark::histories
