// How requests want a dataset staged, and what a copy that they share is made for.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace spark::datasets {

// A prefetched copy is kept for its job so long: after the time that it was asked for by, or, where none was
// given, after it was there.
inline constexpr std::chrono::hours kKeptAfterBy{24}, kKeptWithoutBy{7 * 24};

// Of one request.
struct Demand {
  Bytes max_rate = 0;            // bytes per second; 0: no limit
  bool is_prefetch = false;      // for a job to come: behind everything else
  std::optional<WallTime> by{};  // when a prefetch has to be there; none: whenever nothing else is copied

  auto operator<=>(const Demand&) const = default;
};

// Of all requests that share a copy.
class Demands {
 public:
  void add(const Demand& demand) { all_.insert(demand); }
  void remove(const Demand& demand) { all_.erase(all_.find(demand)); }

  // A staging takes over from every prefetch: of stagings the loosest limit counts, of prefetches the
  // earliest time.
  Demand combined() const {
    std::optional<Demand> combined;
    for (const Demand& one : all_) {
      if (!combined || (combined->is_prefetch && !one.is_prefetch)) {
        combined = one;
      } else if (combined->is_prefetch == one.is_prefetch) {
        const bool is_unlimited = combined->max_rate == 0 || one.max_rate == 0;
        combined->max_rate = is_unlimited ? 0 : std::max(combined->max_rate, one.max_rate);
        if (!combined->by || (one.by && *one.by < *combined->by)) combined->by = one.by;
      }
    }
    return combined.value_or(Demand{});
  }

 private:
  std::multiset<Demand> all_;
};

// Until when a copy that was prefetched by now is kept.
inline WallTime kept_until(const Demand& prefetch, WallTime now) {
  return prefetch.by ? std::max(*prefetch.by, now) + kKeptAfterBy : now + kKeptWithoutBy;
}

// By how much a copy that ends at that time is later than a prefetch was asked for; no value: in time, or
// asked for by no time.
inline std::optional<std::chrono::seconds> lateness(const Demand& prefetch, WallTime end) {
  if (!prefetch.by) return std::nullopt;
  const auto late = std::chrono::duration_cast<std::chrono::seconds>(end - *prefetch.by);
  if (late.count() <= 0) return std::nullopt;
  return late;
}

}  // namespace spark::datasets
