#include "bench/record/histogram.hpp"

#include <cmath>

namespace spark::bench {

void merge_into(Bins& into, const Bins& from) {
  for (const auto& [nanoseconds, count] : from) into[nanoseconds] += count;
}

std::uint64_t sample_count(const Bins& bins) {
  std::uint64_t total = 0;
  for (const auto& [nanoseconds, count] : bins) total += count;
  return total;
}

std::optional<std::uint64_t> percentile(const Bins& bins, double percent) {
  constexpr double kSamplesBeyond = 10;
  const double total = static_cast<double>(sample_count(bins));
  const double beyond = std::round(total * (100 - percent) / 100 * 1e6) / 1e6;
  if (total == 0 || beyond < kSamplesBeyond) return std::nullopt;
  // Rounded to a millionth of a sample, so that 99 % of 1,000 is 990 and not 990.0000000000001.
  const auto rank = static_cast<std::uint64_t>(std::ceil(std::round(total * percent * 1e4) / 1e6));
  std::uint64_t seen = 0;
  for (const auto& [nanoseconds, count] : bins) {
    seen += count;
    if (seen >= rank) return nanoseconds;
  }
  return std::nullopt;
}

}  // namespace spark::bench
