#include "tests/histories/volumes/world/workers.hpp"

#include <algorithm>

namespace spark::histories {

Duration Workers::latency() {
  return Duration(scene_.random.is_one_in(12) ? 200 + scene_.random.below(1500)
                                              : 2 + scene_.random.below(40));
}

void Workers::schedule(const JobPtr& job, Duration after) {
  if (std::ranges::find(jobs_, job) == jobs_.end()) jobs_.push_back(job);
  auto due = [this, job] {
    job->ticket.reset();
    take_turn(job);
  };
  job->ticket = scene_.time.call_at(scene_.time.steady() + after, std::move(due));
}

void Workers::take_turn(const JobPtr& job) {
  const auto pause = job->turn();
  if (!pause) {
    end(job);
    return;
  }
  job->is_in_kernel = pause->is_in_kernel;
  if (job->is_abandoned && !pause->is_in_kernel) {
    end(job);
    return;
  }
  schedule(job, std::max(pause->time, Duration(1)));
}

void Workers::end(const JobPtr& job) {
  std::erase(jobs_, job);
  if (job->ticket) scene_.time.drop(*std::exchange(job->ticket, std::nullopt));
  if (!job->is_abandoned) job->answered();
}

void Workers::expire(const JobPtr& job) {
  job->is_abandoned = true;
  if (!job->is_in_kernel) end(job);
}

bool Workers::is_stuck(const std::string& subject) const {
  return std::ranges::any_of(jobs_, [&](const JobPtr& job) {
    return job->is_abandoned && job->life == life_ && job->subject == subject;
  });
}

void Workers::lose_daemon(Random& random) {
  ++life_;
  const auto all = jobs_;
  for (const JobPtr& job : all) {
    job->is_abandoned = true;
    if (!job->is_in_kernel && random.is_one_in(2)) end(job);
  }
}

void Workers::reboot() {
  ++life_;
  const auto all = jobs_;
  for (const JobPtr& job : all) {
    job->is_abandoned = true;
    end(job);
  }
}

}  // namespace spark::histories
