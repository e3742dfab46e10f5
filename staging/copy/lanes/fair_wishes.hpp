// Units that readers wait for, one of each file in turn: many reads of one file do not hold up those of
// another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace spark::staging {

// Guarded by its user.
class FairWishes {
 public:
  void add(std::uint64_t file, std::uint64_t unit) {
    std::deque<std::uint64_t>& units = units_[file];
    if (units.empty()) turns_.push_back(file);
    const bool is_known = std::ranges::find(units, unit) != units.end();
    if (!is_known && units.size() < kMostOfFile) units.push_back(unit);
  }
  // The oldest of the next file, as file and unit.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> take() {
    if (turns_.empty()) return std::nullopt;
    const std::uint64_t file = turns_.front();
    turns_.pop_front();
    const auto units = units_.find(file);
    const std::uint64_t unit = units->second.front();
    units->second.pop_front();
    if (units->second.empty()) {
      units_.erase(units);
    } else {
      turns_.push_back(file);
    }
    return std::pair(file, unit);
  }

 private:
  static constexpr std::size_t kMostOfFile = 1024;            // a reader asks again for others
  std::map<std::uint64_t, std::deque<std::uint64_t>> units_;  // by file
  std::deque<std::uint64_t> turns_;                           // files with units, each once
};

}  // namespace spark::staging
