#include "base/units.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/text.hpp"

namespace spark {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array kSizes = {Unit{"", 1},       Unit{"B", 1},      Unit{"KiB", kKiB}, Unit{"MiB", kMiB},
                               Unit{"GiB", kGiB}, Unit{"TiB", kTiB}, Unit{"kB", 1e3},   Unit{"MB", 1e6},
                               Unit{"GB", 1e9},   Unit{"TB", 1e12}};
constexpr std::array kDurations = {Unit{"ms", 1}, Unit{"s", 1e3}, Unit{"m", 60e3}, Unit{"h", 3600e3},
                                   Unit{"d", 86400e3}};

// number × the factor of the unit that follows it, or no value if either is not there or it does not fit 63
// bits.
template <std::size_t N>
std::optional<std::uint64_t> parse_quantity(std::string_view text, const std::array<Unit, N>& units) {
  text = trim(text);
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string_view rest = trim(text.substr(static_cast<std::size_t>(end - text.data())));
  for (const Unit& unit : units) {
    if (rest != unit.name) continue;
    const double value = number * unit.factor;
    if (value >= 9.2e18) return std::nullopt;
    return static_cast<std::uint64_t>(std::llround(value));
  }
  return std::nullopt;
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  if (const auto value = parse_quantity(text, kSizes)) return *value;
  return fail(Errc::Invalid, "'" + printable(text) + "' is not a size",
              "write for example 512MiB, 2TiB or 1.5GB");
}

Result<Bytes> parse_rate(std::string_view text) {
  std::string_view size = trim(text);
  if (size.ends_with("/s")) size.remove_suffix(2);
  const auto value = parse_quantity(size, kSizes);
  if (value && *value > 0) return *value;
  return fail(Errc::Invalid, "'" + printable(text) + "' is not a rate",
              "write for example 800MB/s or 3.2GB/s");
}

Result<Bytes> parse_rate_with_unit(std::string_view text) {
  auto rate = parse_rate(text);
  const std::string_view number = trim(text.substr(0, text.find('/')));
  if (!rate || number.empty() || number.back() < '0' || number.back() > '9') return rate;
  return fail(Errc::Invalid, "'" + printable(text) + "' has no unit",
              "write " + printable(number) + "MB/s or " + printable(number) + "GB/s");
}

Result<Duration> parse_duration(std::string_view text) {
  if (const auto value = parse_quantity(text, kDurations)) return Duration(*value);
  return fail(Errc::Invalid, "'" + printable(text) + "' is not a duration",
              "write a number and ms, s, m, h or d, for example 5s");
}

Result<std::optional<Duration>> parse_optional_duration(std::string_view text, std::string_view none_word) {
  if (text == none_word) return std::optional<Duration>();
  auto duration = parse_duration(text);
  if (!duration) {
    duration.error().hint += " or '" + std::string(none_word) + "'";
    return duration.take_error();
  }
  return std::optional<Duration>(*duration);
}

std::string format_bytes(Bytes bytes) {
  constexpr std::array kNames = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kNames.size()) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  const int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f %s", digits, value, kNames[unit]);
  return text;
}

std::string format_rate(double bytes_per_second) {
  return format_bytes(static_cast<Bytes>(std::max(0.0, bytes_per_second))) + "/s";
}

std::string format_duration(std::chrono::nanoseconds duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  char text[48];
  if (seconds < 0.9995) {
    std::snprintf(text, sizeof text, "%.0f ms", seconds * 1e3);
  } else if (seconds < 59.95) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else if (seconds < 3599.5) {
    const long whole = std::lround(seconds);
    std::snprintf(text, sizeof text, "%ld min %02ld s", whole / 60, whole % 60);
  } else {
    const long minutes = std::lround(seconds / 60);
    std::snprintf(text, sizeof text, "%ld h %02ld min", minutes / 60, minutes % 60);
  }
  return text;
}

}  // namespace spark
