#include "base/clock.hpp"

#include <cstdio>
#include <ctime>
#include <string_view>

namespace spark {
namespace {

// Of the digits behind the point; those beyond nanoseconds are dropped.
std::chrono::nanoseconds fraction_of(std::string_view digits) {
  std::chrono::nanoseconds fraction{0}, unit = std::chrono::seconds(1);
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') break;
    unit /= 10;
    fraction += (digit - '0') * unit;
  }
  return fraction;
}

}  // namespace

std::int64_t seconds_since_1970(WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::string rfc3339(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string rfc3339_millis(WallTime time) {
  const auto millis = std::chrono::floor<std::chrono::milliseconds>(time);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(millis);
  char fraction[32];
  std::snprintf(fraction, sizeof fraction, ".%03dZ", static_cast<int>((millis - seconds).count()));
  std::string text = rfc3339(seconds);
  text.pop_back();
  return text + fraction;
}

std::optional<WallTime> parse_rfc3339(const std::string& text) {
  std::tm parts{};
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                  &parts.tm_hour, &parts.tm_min, &parts.tm_sec) != 6 ||
      !text.ends_with('Z') || parts.tm_year < 1970 || parts.tm_year > 2261) {
    return std::nullopt;
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  const WallTime time = std::chrono::system_clock::from_time_t(::timegm(&parts));
  constexpr std::size_t kWhole = 19;  // up to the seconds
  // The 31st of a shorter month would be a day of the next.
  if (rfc3339(time) != text.substr(0, kWhole) + "Z") return std::nullopt;
  const std::string_view rest = std::string_view(text).substr(kWhole);
  if (rest == "Z") return time;
  const bool is_fraction =
      rest.starts_with('.') && rest.find_first_not_of("0123456789", 1) == rest.size() - 1;
  return is_fraction ? std::optional(time + fraction_of(rest.substr(1))) : std::nullopt;
}

}  // namespace spark
