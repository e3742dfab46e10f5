// Units that readers wait for, one of each file in turn: many reads of one file do not hold up those of
// another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace spark::staging {

// Guarded by its user.
class FairWishes {
 public:
  void add(std::uint64_t file, std::uint64_t unit) {
    OfFile& wishes = of_files_[file];
    if (wishes.units.size() == kMostOfFile || !wishes.known.insert(unit).second) return;
    if (wishes.units.empty()) turns_.push_back(file);
    wishes.units.push_back(unit);
  }
  // The oldest of the next file, as file and unit.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> take() {
    if (turns_.empty()) return std::nullopt;
    const std::uint64_t file = turns_.front();
    turns_.pop_front();
    const auto wishes = of_files_.find(file);
    const std::uint64_t unit = wishes->second.units.front();
    wishes->second.units.pop_front();
    wishes->second.known.erase(unit);
    if (wishes->second.units.empty()) {
      of_files_.erase(wishes);
    } else {
      turns_.push_back(file);
    }
    return std::pair(file, unit);
  }

 private:
  static constexpr std::size_t kMostOfFile = 1024;  // a reader asks again for others
  struct OfFile {
    std::deque<std::uint64_t> units;
    std::set<std::uint64_t> known;  // the same
  };
  std::map<std::uint64_t, OfFile> of_files_;
  std::deque<std::uint64_t> turns_;  // files with units, each once
};

}  // namespace spark::staging
