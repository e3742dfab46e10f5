#include "cli/verbs/datasets/by_time.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <optional>

#include "base/text.hpp"
#include "base/units.hpp"

namespace spark::cli {
namespace {

constexpr std::size_t kOffset = 6;  // of "+01:00"
constexpr std::chrono::hours kLongestAhead{10 * 366 * 24};

// "18:00"; no value for anything else.
std::optional<WallTime> next_time_of_day(const std::string& text, WallTime now) {
  unsigned hour = 0, minute = 0;
  char more = 0;
  const bool is_time = std::sscanf(text.c_str(), "%2u:%2u%c", &hour, &minute, &more) == 2;
  if (!is_time || hour > 23 || minute > 59) return std::nullopt;
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  for (int day = 0; day < 2; ++day) {
    std::tm then = local;
    then.tm_mday += day;
    then.tm_hour = static_cast<int>(hour);
    then.tm_min = static_cast<int>(minute);
    then.tm_sec = 0;
    then.tm_isdst = -1;  // as it is on that day
    const auto time = std::chrono::system_clock::from_time_t(std::mktime(&then));
    if (time > now) return time;
  }
  return std::nullopt;
}

std::optional<WallTime> with_offset(const std::string& text) {
  if (text.size() <= kOffset) return std::nullopt;
  const std::string offset = text.substr(text.size() - kOffset);
  char sign = 0, more = 0;
  unsigned hours = 0, minutes = 0;
  const bool is_offset = std::sscanf(offset.c_str(), "%c%2u:%2u%c", &sign, &hours, &minutes, &more) == 3;
  if (!is_offset || (sign != '+' && sign != '-') || hours > 23 || minutes > 59) return std::nullopt;
  const auto there = parse_rfc3339(text.substr(0, text.size() - kOffset) + "Z");
  if (!there) return std::nullopt;
  const auto ahead = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  return sign == '+' ? *there - ahead : *there + ahead;
}

// Whatever is wrong with it; no value if it can't be read.
std::optional<WallTime> read_time(const std::string& text, WallTime now) {
  if (const auto time = next_time_of_day(text, now)) return time;
  if (const auto time = parse_rfc3339(text)) return *time;
  if (const auto time = with_offset(text)) return time;
  const auto left = parse_duration(text);
  if (!left) return std::nullopt;
  return now + std::min<Duration>(*left, kLongestAhead + std::chrono::hours(1));  // a longer one may overflow
}

}  // namespace

Result<WallTime> parse_by(const std::string& text, WallTime now) {
  const auto time = read_time(text, now);
  if (time && *time > now && *time <= now + kLongestAhead) return *time;
  const std::string why = !time ? "' is not a time ahead" : *time <= now ? "' is over" : "' is too far ahead";
  return fail(Errc::Invalid, "'" + printable(text) + why, "for example: 18:00, 2h, 2026-11-25T18:00:00Z");
}

}  // namespace spark::cli
