// A training job that saves checkpoints as its framework does: in several small steps, so that it can be
// killed between any two of them.
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
  Orbax,       // 100.orbax-checkpoint-tmp-TIME is renamed to 100
  NeMo,        // a file step-100-unfinished stands beside the folder step-100 until that is complete
};

class Job {
 public:
  Job(Scene& scene, Naming naming) : scene_(scene), naming_(naming) {}

  std::size_t host() const { return host_; }
  bool is_saving() const { return !steps_.empty(); }
  std::uint64_t last_step() const { return last_; }
  // The hosts that save shards: all, or the one on which the job runs.
  std::vector<std::size_t> hosts() const;

  // Begins to save the next step, or the last one again; then the framework's own rotation, if it keeps only
  // some. Nothing happens until go_on().
  void begin(std::uint64_t step, unsigned kept);
  // The next write, rename or deletion; false if there is nothing more to do.
  bool go_on();
  // It is killed, and may be in the middle of a save.
  void die();
  // A later job, on that host, resumes from this step.
  void resume(std::size_t host, std::uint64_t step);

  std::string name_of(std::uint64_t step) const;
  // Deletes a checkpoint, file by file.
  void begin_removal(std::size_t host, const std::string& name);

 private:
  struct Write {
    std::string what;
    std::function<void()> run;
  };

  void add(std::size_t host, std::string what, std::function<void()> run);
  void add_write(std::size_t host, const std::string& name, const std::string& file, const std::string& text);
  void add_rename(std::size_t host, const std::string& from, const std::string& to);
  void add_removal(std::size_t host, const std::string& name);
  void add_save(std::size_t host, std::uint64_t step);
  void add_renamed(std::size_t host, const std::string& name);
  void add_dcp(std::size_t host, const std::string& name);
  void add_hugging_face(std::size_t host, const std::string& name);
  void add_deepspeed(std::size_t host, const std::string& name);
  void add_marked(std::size_t host, const std::string& name);
  void add_end(std::size_t host, const std::string& name);
  void add_rotation(std::size_t host, std::uint64_t newest, unsigned kept);
  void note_begin(std::size_t host, const std::string& name);
  void note_end(std::size_t host, const std::string& name);
  bool is_renamed() const;  // by its rule
  std::string data(const std::string& file);
  std::filesystem::path at(std::size_t host, const std::string& name) const;

  Scene& scene_;
  Naming naming_;
  std::size_t host_ = 0;
  std::uint64_t last_ = 0;   // the step that it saved or resumed from last
  unsigned written_ = 0;     // files, so that no two have the same data
  unsigned attempts_ = 1;    // of the job
  std::deque<Write> steps_;  // what is left of the save and the rotation
};

}  // namespace spark::histories
