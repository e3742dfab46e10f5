// A training job: it saves one step after the other, rotates old checkpoints, and dies at any moment.
#pragma once

#include <string>
#include <vector>

#include "tests/histories/outputs/job/framework.hpp"
#include "tests/histories/outputs/scene.hpp"

namespace spark::histories {

class Job {
 public:
  Job(Scene& scene, Naming naming) : scene_(scene), framework_(scene, naming) {}

  std::size_t host() const { return host_; }
  bool is_saving() const { return !steps_.empty(); }
  std::uint64_t last_step() const { return last_; }

  // Begins to save that step; then the framework's own rotation, if it keeps only some. Nothing happens until
  // go_on().
  void begin(std::uint64_t step, unsigned kept);
  // The next write, rename or deletion; false if there is nothing more to do.
  bool go_on();
  // It is killed, and may be in the middle of a save.
  void die();
  // A later job, on that host, resumes from this step.
  void resume(std::size_t host, std::uint64_t step);
  // Deletes a checkpoint, file by file.
  void begin_removal(std::size_t host, const std::string& name);

 private:
  // The hosts that save shards: all, or the one on which the job runs.
  std::vector<std::size_t> hosts() const;
  void add_rotation(std::size_t host, std::uint64_t newest, unsigned kept);

  Scene& scene_;
  Framework framework_;
  std::size_t host_ = 0;
  std::uint64_t last_ = 0;  // the step that it saved or resumed from last
  unsigned attempts_ = 1;   // of the job
  JobSteps steps_;          // what is left of the save and the rotation
};

}  // namespace spark::histories
