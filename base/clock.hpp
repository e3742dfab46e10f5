// Time as a seam, so that back-off, deadlines and outages are tested without waiting.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace spark {

using WallTime = std::chrono::system_clock::time_point;
using SteadyTime = std::chrono::steady_clock::time_point;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime wall() const = 0;      // for records and people; may jump
  virtual SteadyTime steady() const = 0;  // for durations
};

class SystemClock final : public Clock {
 public:
  WallTime wall() const override { return std::chrono::system_clock::now(); }
  SteadyTime steady() const override { return std::chrono::steady_clock::now(); }
};

std::int64_t seconds_since_1970(WallTime time);
// RFC 3339 UTC, whole seconds: "2026-11-20T16:21:26Z". The form of nearly every time in the JSON.
std::string rfc3339(WallTime time);
// With milliseconds: "2026-11-20T16:21:26.042Z", for times of different hosts that are compared.
std::string rfc3339_millis(WallTime time);
// The inverse of both; no value if the text is no such time, or outside the years 1970 to 2261, the range of
// WallTime.
std::optional<WallTime> parse_rfc3339(const std::string& text);

}  // namespace spark
