// What the job, and the people who work in its folder, do.
#pragma once

#include "tests/histories/outputs/hosts.hpp"
#include "tests/histories/outputs/job/job.hpp"
#include "tests/histories/outputs/scene.hpp"

namespace spark::histories {

class JobActions {
 public:
  // All outlive it.
  JobActions(Scene& scene, Hosts& hosts, Job& job) : scene_(scene), hosts_(hosts), job_(job) {}

  void save(const Dice& dice);
  void save_in_part(const Dice& dice);
  void save_again(const Dice& dice);
  void kill_job(const Dice& dice);
  void resume_older(const Dice& dice);
  void move_job(const Dice& dice);
  void remove_one(const Dice& dice);
  void touch(const Dice& dice);
  void write_beside(const Dice& dice);
  void link_latest(const Dice& dice);

  Job& job() { return job_; }

  unsigned kept_by_job = 0;  // checkpoints, by its own rotation; 0: all

 private:
  // What the job still has to do, at most so many steps, with pauses.
  void run_job(std::uint32_t most, std::uint32_t die);
  Scene& scene_;
  Hosts& hosts_;
  Job& job_;
};

}  // namespace spark::histories
