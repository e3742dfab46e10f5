#include "staging/copy/transfer/left_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "staging/copy/lanes/runner.hpp"
#include "staging/copy/transfer/small_files.hpp"
#include "staging/copy/transfer/viewer.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/units.hpp"

namespace spark::staging {

void LeftFiles::add(Entry* entry) {
  const std::scoped_lock lock(mutex_);
  waiting_.insert(entry);
}

void LeftFiles::want(Entry* entry, std::uint64_t unit) {
  if (!context_.has_source) return;
  const std::scoped_lock lock(mutex_);
  const bool is_waiting = waiting_.contains(entry);
  if (grown_.contains(entry) || (!is_waiting && !copying_.contains(entry))) return;
  const auto [units, is_first] = wanted_.try_emplace(entry);
  if (std::ranges::find(units->second, unit) == units->second.end()) units->second.push_back(unit);
  if (is_waiting && is_first) first_.push_back(entry);
}

Result<> LeftFiles::copy_wanted(const PieceLimit* limit) {
  for (;;) {
    Entry* entry = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      if (first_.empty()) return {};
      entry = first_.front();
      first_.pop_front();
      waiting_.erase(entry);
      copying_.insert(entry);
    }
    const bool waits_again = has_grown(*entry);
    if (waits_again) context_.viewer->withdraw(*entry, true);
    auto copied = waits_again ? Result<>() : copy(*entry, limit);
    const std::scoped_lock lock(mutex_);
    copying_.erase(entry);
    wanted_.erase(entry);
    if (waits_again) {
      waiting_.insert(entry);
      grown_.insert(entry);
    }
    if (!copied) return copied;
  }
}

// It may have any size now, and is not as walked: the others do not wait for it.
bool LeftFiles::has_grown(const Entry& entry) const {
  if (!is_small(entry)) return false;
  const Parent parent = open_parent(*context_.source, entry.path.view());
  struct stat now {};
  return parent.folder &&
         ::fstatat(parent.folder.get(), parent.name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(now.st_mode) && static_cast<Bytes>(now.st_size) > kSmallFile;
}

Result<> LeftFiles::copy(Entry& entry, const PieceLimit* limit) {
  RunPlan plan;
  plan.io = io_;
  plan.limit = limit;
  plan.counters = context_.counters;
  plan.files = 1;
  // Each thread that copies small files may be here.
  if (is_small(entry)) plan.shape = {1, 1, kMiB, 0};
  plan.work_for = [&](std::uint64_t /*index*/) { return work_for_(entry); };
  plan.wanted = [&]() -> std::optional<WantedUnit> {
    const auto unit = take_wanted(entry);
    if (!unit) return std::nullopt;
    return WantedUnit{0, *unit};
  };
  return run(plan, *context_.end);
}

std::optional<std::uint64_t> LeftFiles::take_wanted(const Entry& entry) {
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

std::vector<Entry*> LeftFiles::take_rest() {
  const std::scoped_lock lock(mutex_);
  std::vector<Entry*> rest(waiting_.begin(), waiting_.end());
  std::ranges::sort(rest, {}, [](const Entry* entry) { return entry->path.view(); });
  waiting_.clear();
  first_.clear();
  return rest;
}

}  // namespace spark::staging
