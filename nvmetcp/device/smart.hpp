// A controller's SMART log page (02h) on its drives: the NVM Express base
// specification 2.0, 5.16.1.3. A target in software fills in little of it: Linux's nvmet counts commands and
// leaves the rest zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spark::nvmetcp {

inline constexpr std::size_t kSmartLogBytes = 512;

struct Smart {
  std::vector<std::string> critical;      // the drives' warnings, in words
  std::optional<int> temperature_c;       // none: not measured
  std::optional<unsigned> spare_percent;  // of the drives' spare blocks, still there; none: not measured
  unsigned used_percent = 0;              // of the drives' rated endurance; may exceed 100
  std::uint64_t media_errors = 0;         // reads and writes that the drives could not do
  bool operator==(const Smart&) const = default;
};

Smart decode_smart(std::span<const std::byte, kSmartLogBytes> page);

// Asks a controller ("nvme3"), which has to be live: the command waits in the kernel otherwise. Unsupported:
// it has no such page. Unavailable: no answer.
Result<Smart> read_smart(const std::string& controller);

}  // namespace spark::nvmetcp
