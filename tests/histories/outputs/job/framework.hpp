// How each framework writes and deletes a checkpoint: in several small steps, so that a job can be killed
// between any two of them.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "tests/histories/outputs/scene.hpp"

namespace spark::histories {

// How the names of its checkpoints look, beside the rule of the output.
enum class Naming {
  Plain,       // a folder: step-100
  SingleFile,  // a file: step-100.pt
  TwoFiles,    // two: G_100.pth and D_100.pth
  Orbax,       // 100.orbax-checkpoint-tmp-TIME is renamed to 100
  NeMo,        // a file step-100-unfinished stands beside the folder step-100 until that is complete
};

struct JobStep {
  std::string what;  // for the story
  std::function<void()> run;
};
using JobSteps = std::deque<JobStep>;

class Framework {
 public:
  Framework(Scene& scene, Naming naming) : scene_(scene), naming_(naming) {}

  std::string name_of(std::uint64_t step) const;
  // `attempt`: of the job, which writes it into its marker.
  JobSteps steps_of_save(std::size_t host, std::uint64_t step, unsigned attempt);
  JobSteps steps_of_removal(std::size_t host, const std::string& name);

 private:
  void add(std::size_t host, std::string what, std::function<void()> run);
  void add_write(std::size_t host, const std::string& name, const std::string& file, const std::string& text);
  void add_rename(std::size_t host, const std::string& from, const std::string& to);
  void add_renamed(std::size_t host, const std::string& name);
  void add_first_of_two(std::size_t host, std::uint64_t step);
  void add_dcp(std::size_t host, const std::string& name);
  void add_hugging_face(std::size_t host, const std::string& name);
  void add_deepspeed(std::size_t host, const std::string& name);
  void add_marked(std::size_t host, const std::string& name);
  void add_end(std::size_t host, const std::string& name);
  void note_begin(std::size_t host, const std::string& name);
  void note_latest(std::size_t host, const std::string& name);
  void note_end(std::size_t host, const std::string& name);
  bool is_renamed() const;  // by its rule
  // Whether the daemon has had a chance to know all files of it.
  bool is_seen(std::size_t host, const Save& save) const;
  std::string data(const std::string& file);
  std::filesystem::path at(std::size_t host, const std::string& name) const;

  Scene& scene_;
  Naming naming_;
  unsigned written_ = 0;  // files, so that no two have the same data
  unsigned attempt_ = 1;
  JobSteps steps_;  // of the save or removal that is being planned
};

}  // namespace spark::histories
