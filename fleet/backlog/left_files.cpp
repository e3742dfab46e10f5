#include "fleet/backlog/left_files.hpp"

#include <algorithm>

#include "staging/copy/copy_file.hpp"
#include "staging/copy/lanes/runner.hpp"

namespace spark::fleet {

void LeftFiles::add(staging::Entry* entry) {
  const std::scoped_lock lock(mutex_);
  waiting_.insert(entry);
}

void LeftFiles::want(staging::Entry* entry, std::uint64_t unit) {
  const std::scoped_lock lock(mutex_);
  const bool is_waiting = waiting_.contains(entry);
  if (!is_waiting && !copying_.contains(entry)) return;
  const auto [units, is_first] = wanted_.try_emplace(entry);
  if (std::ranges::find(units->second, unit) == units->second.end()) units->second.push_back(unit);
  if (is_waiting && is_first) first_.push_back(entry);
}

Result<> LeftFiles::copy_wanted(const staging::PieceLimit& limit) {
  for (;;) {
    staging::Entry* entry = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      if (first_.empty()) return {};
      entry = first_.front();
      first_.pop_front();
      waiting_.erase(entry);
      copying_.insert(entry);
    }
    auto copied = copy(*entry, limit);
    const std::scoped_lock lock(mutex_);
    copying_.erase(entry);
    wanted_.erase(entry);
    if (!copied) return copied;
  }
}

Result<> LeftFiles::copy(staging::Entry& entry, const staging::PieceLimit& limit) {
  const auto begun = job_.resumed.begun.find(staging::index_of(job_.entries, entry.path));
  staging::RunPlan plan;
  plan.io = job_.io;
  plan.limit = &limit;
  plan.counters = job_.context.counters;
  plan.files = 1;
  plan.work_for = [&](std::uint64_t /*index*/) {
    return staging::copy_file(job_.context, entry,
                              begun == job_.resumed.begun.end() ? nullptr : &begun->second);
  };
  plan.wanted = [&]() -> std::optional<staging::WantedUnit> {
    const auto unit = take_wanted(entry);
    if (!unit) return std::nullopt;
    return staging::WantedUnit{0, *unit};
  };
  return staging::run(plan, *job_.context.end);
}

std::optional<std::uint64_t> LeftFiles::take_wanted(const staging::Entry& entry) {
  const std::scoped_lock lock(mutex_);
  std::deque<std::uint64_t>& units = wanted_[&entry];
  if (units.empty()) return std::nullopt;
  const std::uint64_t unit = units.front();
  units.pop_front();
  return unit;
}

bool LeftFiles::is_copying() const {
  const std::scoped_lock lock(mutex_);
  return !copying_.empty();
}

void LeftFiles::hand_over() {
  const std::scoped_lock lock(mutex_);
  job_.large.insert(job_.large.end(), waiting_.begin(), waiting_.end());
  std::ranges::sort(job_.large, {}, [](const staging::Entry* entry) { return entry->path.view(); });
  waiting_.clear();
  first_.clear();
}

}  // namespace spark::fleet
