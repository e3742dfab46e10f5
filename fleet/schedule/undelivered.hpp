// Units that this host read from the source and that are, as far as it knows, on no other host. If this host
// fails, they have to be read again.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>

#include "base/clock.hpp"

namespace spark::fleet {

inline constexpr std::size_t kMostUndelivered = 2;
// Peers learn of a unit and fetch it within this time, unless they or their network are slow.
inline constexpr std::chrono::milliseconds kDelivery{1000};

class Undelivered {
 public:
  void begun(std::uint64_t unit) { read_at_[unit] = SteadyTime::max(); }
  void read(std::uint64_t unit, SteadyTime now) {
    if (const auto found = read_at_.find(unit); found != read_at_.end()) found->second = now;
  }
  void failed(std::uint64_t unit) { read_at_.erase(unit); }
  template <class IsThere>
  void delivered(const IsThere& is_there) {
    std::erase_if(read_at_, [&](const auto& one) { return is_there(one.first); });
  }

  bool are_many() const { return read_at_.size() >= kMostUndelivered; }
  // Many were read long enough ago to be on another host.
  bool are_many_late(SteadyTime now) const {
    const auto late =
        std::ranges::count_if(read_at_, [&](const auto& one) { return one.second <= now - kDelivery; });
    return static_cast<std::size_t>(late) >= kMostUndelivered;
  }

 private:
  std::map<std::uint64_t, SteadyTime> read_at_;  // SteadyTime::max(): being read
};

}  // namespace spark::fleet
