#include "staging/cache/eviction.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace spark::staging {
namespace {

constexpr double kDay = 86400, kUnknownRate = 1e9;  // seconds; bytes per second

Bytes freed_by(const Candidate& candidate) {
  return candidate.freed.value_or(candidate.bytes);
}

Shortage less(const Shortage& shortage, const Candidate& gone) {
  return {shortage.bytes - std::min(shortage.bytes, gone.bytes),
          shortage.inodes - std::min(shortage.inodes, gone.inodes),
          shortage.disk_bytes - std::min(shortage.disk_bytes, freed_by(gone))};
}

bool helps(const Candidate& candidate, const Shortage& shortage) {
  return (shortage.bytes > 0 && candidate.bytes > 0) || (shortage.inodes > 0 && candidate.inodes > 0) ||
         (shortage.disk_bytes > 0 && freed_by(candidate) > 0);
}

Shortage without(const std::vector<Candidate>& candidates, const std::vector<std::size_t>& victims,
                 Shortage shortage) {
  for (const std::size_t victim : victims) shortage = less(shortage, candidates[victim]);
  return shortage;
}

}  // namespace

double worth(const Candidate& candidate) {
  if (candidate.is_useless) return 0;
  const double bytes = std::max(1.0, static_cast<double>(candidate.bytes));
  const double seconds = candidate.stage_seconds > 0 ? candidate.stage_seconds : bytes / kUnknownRate;
  const double idle = std::max(0.0, static_cast<double>(candidate.idle.count()));
  return seconds / bytes * kDay / (kDay + idle);
}

std::optional<std::vector<std::size_t>> choose_victims(const std::vector<Candidate>& candidates,
                                                       const Shortage& shortage) {
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return std::pair(candidates[i].is_prefetched && !candidates[i].is_useless, worth(candidates[i]));
  });
  std::vector<std::size_t> victims;
  Shortage left = shortage;
  for (const std::size_t i : order) {
    if (left.is_none()) break;
    if (!helps(candidates[i], left)) continue;
    left = less(left, candidates[i]);
    victims.push_back(i);
  }
  if (!left.is_none()) return std::nullopt;
  for (std::size_t i = victims.size(); i-- > 0;) {
    std::vector<std::size_t> fewer = victims;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (without(candidates, fewer, shortage).is_none()) victims = std::move(fewer);
  }
  return victims;
}

}  // namespace spark::staging
