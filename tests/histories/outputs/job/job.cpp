#include "tests/histories/outputs/job/job.hpp"

#include <algorithm>

namespace spark::histories {
namespace {

void append(JobSteps& steps, JobSteps more) {
  for (JobStep& one : more) steps.push_back(std::move(one));
}

}  // namespace

std::vector<std::size_t> Job::hosts() const {
  if (scene_.settings.nodes <= 1) return {host_};
  std::vector<std::size_t> all;
  for (std::size_t host = 0; host < scene_.machines.size(); ++host) all.push_back(host);
  return all;
}

void Job::begin_removal(std::size_t host, const std::string& name) {
  append(steps_, framework_.steps_of_removal(host, name));
}

void Job::add_rotation(std::size_t host, std::uint64_t newest, unsigned kept) {
  std::vector<std::pair<std::uint64_t, std::string>> old;
  for (const auto& [name, save] : scene_.truth.here[host]) {
    if (save.step < newest) old.emplace_back(save.step, name);
  }
  std::ranges::sort(old);
  while (old.size() >= kept && !old.empty()) {
    append(steps_, framework_.steps_of_removal(host, old.front().second));
    old.erase(old.begin());
  }
}

void Job::begin(std::uint64_t step, unsigned kept) {
  for (const std::size_t host : hosts()) append(steps_, framework_.steps_of_save(host, step, attempts_));
  last_ = step;
  if (kept == 0) return;
  for (const std::size_t host : hosts()) add_rotation(host, step, kept);
}

bool Job::go_on() {
  if (steps_.empty()) return false;
  file_times().wait_for_tick();
  const JobStep step = std::move(steps_.front());
  steps_.pop_front();
  step.run();
  scene_.tell(step.what);
  return true;
}

void Job::die() {
  steps_.clear();
  ++attempts_;
  for (Saves& saves : scene_.truth.here) {
    for (auto& [name, save] : saves) {
      if (save.state == Save::State::Saving) save.state = Save::State::Torn;
    }
  }
}

void Job::resume(std::size_t host, std::uint64_t step) {
  if (step < last_) scene_.truth.last_return = scene_.now();
  host_ = host;
  last_ = step;
}

}  // namespace spark::histories
