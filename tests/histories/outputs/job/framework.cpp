#include "tests/histories/outputs/job/framework.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "tests/histories/outputs/daemon.hpp"

namespace spark::histories {
namespace {

namespace fs = std::filesystem;
using config::Complete;

}  // namespace

fs::path Framework::at(std::size_t host, const std::string& name) const {
  return scene_.machines[host]->job_folder() / name;
}

std::string Framework::name_of(std::uint64_t step) const {
  const std::string number = std::to_string(step);
  switch (scene_.settings.complete) {
    case Complete::HuggingFace:
      return "checkpoint-" + number;
    case Complete::DeepSpeed:
      return "global_step" + number;
    default:
      break;
  }
  if (naming_ == Naming::SingleFile && is_renamed()) return "step-" + number + ".pt";
  if (naming_ == Naming::TwoFiles && is_renamed()) return "G_" + number + ".pth";
  return naming_ == Naming::Orbax && is_renamed() ? number : "step-" + number;
}

bool Framework::is_renamed() const {
  return scene_.settings.complete == Complete::Rename || scene_.settings.complete == Complete::OnRequest;
}

std::string Framework::data(const std::string& file) {
  const std::string line =
      file + " #" + std::to_string(++written_) + " of attempt " + std::to_string(attempt_) + "\n";
  return line;
}

void Framework::add(std::size_t host, std::string what, std::function<void()> run) {
  auto noted = [this, host, run = std::move(run)] {
    run();
    file_times().see(scene_.machines[host]->job_folder().native());
  };
  steps_.push_back({scene_.machines[host]->name() + ": the job " + what, std::move(noted)});
}

void Framework::add_write(std::size_t host, const std::string& name, const std::string& file,
                          const std::string& text) {
  add(host, "writes " + name + (file.empty() ? "" : "/" + file), [this, host, name, file, text] {
    const fs::path path = file.empty() ? at(host, name) : at(host, name) / file;
    std::error_code error;
    if (!file.empty()) fs::create_directories(path.parent_path(), error);
    write_text(path, text);
  });
}

void Framework::add_rename(std::size_t host, const std::string& from, const std::string& to) {
  add(host, "renames " + from + " to " + to, [this, host, from, to] {
    std::error_code error;
    fs::rename(at(host, from), at(host, to), error);
  });
}

// With `rename` a folder from which files are deleted looks like one that was written in place, to the kernel
// too: both have one time as mtime and ctime. Only a look that has seen it whole can tell.
bool Framework::is_seen(std::size_t host, const Save& save) const {
  const bool is_by_steady_clock = scene_.truth.last_clock_change != SteadyTime();
  const std::chrono::seconds needed(is_by_steady_clock ? 9 : 3);  // two looks, or one
  return !is_renamed() || scene_.machines[host]->looked - std::max(save.done, save.changed) > needed;
}

// As shutil.rmtree: file by file, in no useful order.
JobSteps Framework::steps_of_removal(std::size_t host, const std::string& name) {
  steps_.clear();
  add(host, "begins to delete " + name, [this, host, name] {
    Save& save = scene_.truth.here[host][name];
    const bool was_seen = is_seen(host, save);
    save.state = Save::State::Discarded;
    save.changed = scene_.now();
    scene_.truth.remnants.insert(name);
    std::error_code error;
    std::vector<fs::path> files;
    for (fs::directory_iterator entry(at(host, name), error), end; !error && entry != end;
         entry.increment(error))
      files.push_back(entry->path());
    std::ranges::sort(files);
    std::size_t left = files.size();
    // What stays longest is the proof: the worst case, and a common one.
    for (const fs::path& file : files) {
      if (--left == 0) break;
      fs::remove_all(file, error);
    }
    if (!was_seen) scene_.truth.complete[name].push_back(content_of(at(host, name)));
  });
  add(host, "ends to delete " + name, [this, host, name] {
    std::error_code error;
    fs::remove_all(at(host, name), error);
    Save& save = scene_.truth.here[host][name];
    save.changed = scene_.now();
    scene_.truth.gone.push_back(save);
    scene_.truth.here[host].erase(name);
  });
  return std::exchange(steps_, {});
}

void Framework::note_begin(std::size_t host, const std::string& name) {
  Save& save = scene_.truth.here[host][name];
  save.state = Save::State::Saving;
  save.step = scene_.truth.steps[name];
  save.changed = scene_.now();
}

// A higher step than `latest` names is not meant any more. A lower one counts only if a look has seen it
// while `latest` named it.
void Framework::note_latest(std::size_t host, const std::string& name) {
  constexpr std::chrono::seconds kSeen{20};
  const Machine& machine = *scene_.machines[host];
  const bool is_watched = machine.daemon != nullptr && scene_.now() - machine.started >= kSeen;
  for (auto& [other, save] : scene_.truth.here[host]) {
    const bool was_seen = is_watched && scene_.now() - save.done >= kSeen;
    if (other == name || save.state != Save::State::Complete) continue;
    if (save.step > scene_.truth.step_of(name) || !was_seen) save.state = Save::State::Unclear;
  }
}

void Framework::note_end(std::size_t host, const std::string& name) {
  if (scene_.settings.complete == Complete::DeepSpeed) note_latest(host, name);
  Truth& truth = scene_.truth;
  truth.complete_now(host, name, content_of(at(host, name)), scene_.now());
  truth.here[host][name].attempt = std::to_string(attempt_);
  if (scene_.settings.nodes <= 1) return;
  // What is published has the files of all hosts.
  Content all;
  for (std::size_t other = 0; other < truth.here.size(); ++other) {
    const auto save = truth.here[other].find(name);
    const bool is_same = save != truth.here[other].end() && save->second.state == Save::State::Complete &&
                         save->second.attempt == std::to_string(attempt_);
    if (!is_same) return;
    all.merge(content_of(at(other, name)));
  }
  truth.complete[name].push_back(all);
}

void Framework::add_end(std::size_t host, const std::string& name) {
  auto end = [this, host, name, last = std::move(steps_.back().run)] {
    last();
    note_end(host, name);
  };
  steps_.back().run = std::move(end);
  steps_.back().what += ": " + name + " is complete";
}

void Framework::add_renamed(std::size_t host, const std::string& name) {
  std::string temporary = "tmp-" + name;
  const bool is_file = naming_ == Naming::SingleFile || naming_ == Naming::TwoFiles;
  if (is_file) temporary = name + ".tmp";
  if (naming_ == Naming::Orbax)
    temporary = name + ".orbax-checkpoint-tmp-17033341219302" + std::to_string(50 + attempt_);
  if (naming_ == Naming::NeMo) {
    scene_.truth.temporary.insert(name + "-unfinished");
    add_write(host, name + "-unfinished", "", "");
    temporary = name;
  } else {
    scene_.truth.temporary.insert(temporary);
  }
  if (is_file) {
    add_write(host, temporary, "", data("model"));
  } else {
    for (const char* file : {"model.bin", "optim.bin", "args.json"})
      add_write(host, temporary, file, data(file));
  }
  if (naming_ == Naming::NeMo) {
    add(host, "removes " + name + "-unfinished", [this, host, name] {
      std::error_code error;
      fs::remove(at(host, name + "-unfinished"), error);
    });
  } else if (is_file) {
    add_rename(host, temporary, name);
  } else {
    // A folder can't replace one that is not empty.
    add(host, "renames " + temporary + " to " + name, [this, host, temporary, name] {
      std::error_code error;
      fs::remove_all(at(host, name), error);
      fs::rename(at(host, temporary), at(host, name), error);
    });
  }
}

void Framework::add_dcp(std::size_t host, const std::string& name) {
  add_write(host, name, "__0_0.distcp", data("__0_0.distcp"));
  add_write(host, name, "__1_0.distcp", data("__1_0.distcp"));
  add_write(host, name, ".metadata.tmp", "pickle __0_0.distcp and __1_0.distcp " + data(".metadata"));
  add_rename(host, name + "/.metadata.tmp", name + "/.metadata");
}

void Framework::add_hugging_face(std::size_t host, const std::string& name) {
  add_write(host, name, "config.json", "{}");
  add_write(host, name, "model.safetensors", data("model"));
  add_write(host, name, "optimizer.pt", data("optimizer"));
  add_write(host, name, "trainer_state.json",
            "{\"global_step\": " + std::to_string(scene_.truth.step_of(name)) + "}");
}

void Framework::add_deepspeed(std::size_t host, const std::string& name) {
  add_write(host, name, "mp_rank_00_model_states.pt", data("model"));
  add_write(host, name, "zero_pp_rank_0_mp_rank_00_optim_states.pt", data("optim"));
  add_write(host, name, "zero_pp_rank_1_mp_rank_00_optim_states.pt", data("optim"));
  add_write(host, "latest", "", name);
}

void Framework::add_marked(std::size_t host, const std::string& name) {
  const std::string shard = scene_.settings.nodes > 1 ? "rank" + std::to_string(host) : "model";
  add_write(host, name, shard + ".bin", data(shard));
  add_write(host, name, shard + ".optim", data(shard));
  add_write(host, name, scene_.settings.marker, "attempt " + std::to_string(attempt_));
}

// A save of its own, with the same step.
void Framework::add_first_of_two(std::size_t host, std::uint64_t step) {
  const std::string name = "D_" + std::to_string(step) + ".pth";
  scene_.truth.steps[name] = step;
  add_renamed(host, name);
  auto begin = [this, host, name, run = std::move(steps_.back().run)] {
    note_begin(host, name);
    run();
  };
  steps_.back().run = std::move(begin);
  add_end(host, name);
}

JobSteps Framework::steps_of_save(std::size_t host, std::uint64_t step, unsigned attempt) {
  attempt_ = attempt;
  steps_.clear();
  const std::string name = name_of(step);
  scene_.truth.steps[name] = step;
  const std::size_t first = 0;
  if (naming_ == Naming::TwoFiles && is_renamed()) add_first_of_two(host, step);
  switch (scene_.settings.complete) {
    case Complete::Dcp:
      add_dcp(host, name);
      break;
    case Complete::HuggingFace:
      add_hugging_face(host, name);
      break;
    case Complete::DeepSpeed:
      add_deepspeed(host, name);
      break;
    case Complete::Marker:
      add_marked(host, name);
      break;
    case Complete::Rename:
    case Complete::OnRequest:
      add_renamed(host, name);
      break;
  }
  // From its first write on the name has an unfinished checkpoint; a renamed one has it at the end alone.
  const std::size_t begins = is_renamed() && naming_ != Naming::NeMo ? steps_.size() - 1 : first;
  auto begin = [this, host, name, run = std::move(steps_[begins].run)] {
    note_begin(host, name);
    run();
  };
  steps_[begins].run = std::move(begin);
  add_end(host, name);
  return std::exchange(steps_, {});
}

}  // namespace spark::histories
