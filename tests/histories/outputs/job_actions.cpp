#include "tests/histories/outputs/job_actions.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

namespace spark::histories {
namespace {

namespace fs = std::filesystem;
using config::Complete;

constexpr std::uint64_t kEvery = 100;  // steps between two checkpoints

// The complete ones of a host, the lowest step first.
std::vector<std::string> complete_here(const Saves& saves) {
  std::vector<std::pair<std::uint64_t, std::string>> found;
  for (const auto& [name, save] : saves) {
    if (save.state == Save::State::Complete) found.emplace_back(save.step, name);
  }
  std::ranges::sort(found);
  std::vector<std::string> names;
  for (auto& [step, name] : found) names.push_back(std::move(name));
  return names;
}

}  // namespace

void JobActions::run_job(std::uint32_t most, std::uint32_t die) {
  constexpr std::array<unsigned, 5> kPauses = {20, 200, 700, 2'000, 6'000};
  std::mt19937_64 random(die);
  for (std::uint32_t done = 0; done < most && !scene_.violation && job_.go_on(); ++done)
    hosts_.run_for(Duration(kPauses[random() % kPauses.size()] + 1));
}

void JobActions::save(const Dice& dice) {
  if (!job_.is_saving()) job_.begin(job_.last_step() + kEvery, kept_by_job);
  run_job(100, dice[0]);
}

void JobActions::save_in_part(const Dice& dice) {
  if (!job_.is_saving()) job_.begin(job_.last_step() + kEvery, kept_by_job);
  run_job(1 + dice[1] % 8, dice[0]);
}

void JobActions::save_again(const Dice& dice) {
  if (job_.is_saving() || job_.last_step() == 0) return;
  scene_.tell("the job is killed, and saves the same step again");
  job_.die();
  job_.begin(job_.last_step(), kept_by_job);
  run_job(1 + dice[1] % 12, dice[0]);
}

void JobActions::kill_job(const Dice& /*dice*/) {
  scene_.tell(job_.is_saving() ? "the job is killed while it saves" : "the job is killed");
  job_.die();
  const auto left = complete_here(scene_.truth.here[job_.host()]);
  if (!left.empty()) job_.resume(job_.host(), scene_.truth.step_of(left.back()));
}

// DeepSpeed's own `latest` says which step is the newest; then a higher one is no longer meant.
void JobActions::resume_older(const Dice& dice) {
  const auto left = complete_here(scene_.truth.here[job_.host()]);
  if (left.empty() || scene_.settings.complete == Complete::DeepSpeed) return;
  const std::string& name = left[dice[0] % left.size()];
  scene_.tell("the job is killed, and resumes from " + name);
  job_.die();
  job_.resume(job_.host(), scene_.truth.step_of(name));
}

void JobActions::move_job(const Dice& dice) {
  if (scene_.settings.nodes > 1 || scene_.machines.size() < 2) return;
  const auto highest = scene_.truth.highest_in(listing_of(scene_.published()));
  const Machine& to = hosts_.chosen(dice[0]);
  job_.die();
  job_.resume(to.index, highest ? scene_.truth.step_of(*highest) : 0);
  scene_.tell("the job moves to " + to.name() + ", and resumes from " + highest.value_or("nothing"));
}

void JobActions::remove_one(const Dice& dice) {
  Machine& one = hosts_.chosen(dice[0]);
  const auto all = complete_here(scene_.truth.here[one.index]);
  if (all.empty() || job_.is_saving()) return;
  job_.begin_removal(one.index, all[dice[1] % all.size()]);
  run_job(dice[2] % 4 == 0 ? 1 : 2, dice[2]);
}

void JobActions::touch(const Dice& dice) {
  Machine& one = hosts_.chosen(dice[0]);
  const auto all = complete_here(scene_.truth.here[one.index]);
  if (all.empty()) return;
  const std::string& name = all[dice[1] % all.size()];
  const fs::path path = one.job_folder() / name;
  Save& save = scene_.truth.here[one.index][name];
  file_times().wait_for_tick();
  unsigned kind = dice[2] % 4;
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  if (kind == 1 && (!is_folder || scene_.settings.nodes > 1)) kind = 0;
  std::string what = "touches " + name;
  if (kind == 1) {
    write_text(path / "README.md", "the best so far");
    what = "writes a README into " + name;
    // The marker is then older than a file. So may be any proof from before the host's last start: that is
    // how a save looks that was interrupted since.
    if (scene_.settings.complete == Complete::Marker || one.booted > save.done)
      save.state = Save::State::Unclear;
  } else if (kind == 2) {
    (void)::chmod(path.c_str(), is_folder ? 0750 : 0640);
    what = "changes the mode of " + name;
  } else {
    (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  }
  // Its rule knows one that `latest` does not name by its last change alone.
  if (scene_.settings.complete == Complete::DeepSpeed) save.state = Save::State::Unclear;
  file_times().see(one.job_folder().native());
  scene_.truth.renew(one.index, name, content_of(path), scene_.now());
  scene_.tell(one, "a person " + what);
}

void JobActions::write_beside(const Dice& dice) {
  constexpr std::array<const char*, 8> kFiles = {"train.log",
                                                 "config.yaml",
                                                 "runs/events.out.tfevents.1",
                                                 "tokenizer/tokenizer.json",
                                                 "args.json",
                                                 "zero_to_fp32.py",
                                                 "last_checkpoint",
                                                 "progress.txt"};
  constexpr std::array<const char*, 4> kNumbered = {"fold_0/model.pt", "fold_1/model.pt",
                                                    "gemma-2/model.safetensors", "replay_7.pkl"};
  Machine& one = *scene_.machines[job_.host()];
  const bool is_numbered = dice[1] % 8 == 7 && scene_.settings.nodes <= 1;
  const fs::path file = is_numbered ? kNumbered[dice[0] % kNumbered.size()] : kFiles[dice[0] % kFiles.size()];
  std::error_code error;
  file_times().wait_for_tick();
  fs::create_directories((one.job_folder() / file).parent_path(), error);
  append_text(one.job_folder() / file, "line\n");
  file_times().see(one.job_folder().native());
  (is_numbered ? scene_.truth.numbered : scene_.truth.beside).insert(file.begin()->native());
  scene_.tell(one, "the job writes " + file.native());
}

void JobActions::link_latest(const Dice& /*dice*/) {
  Machine& one = *scene_.machines[job_.host()];
  const auto all = complete_here(scene_.truth.here[one.index]);
  if (all.empty() || scene_.settings.complete == Complete::DeepSpeed) return;
  const fs::path link = one.job_folder() / "latest";
  std::error_code error;
  file_times().wait_for_tick();
  fs::remove(link, error);
  fs::create_symlink(all.back(), link, error);
  file_times().see(one.job_folder().native());
  one.own_link = all.back();
  scene_.tell(one, "the job makes its own link `latest` -> " + all.back());
}

}  // namespace spark::histories
