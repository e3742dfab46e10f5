#include "cli/format/text.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace spark::cli {

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  const std::string margin(indent, ' ');
  std::string out, line;
  for (const std::string& word : split(text, ' ')) {
    if (!line.empty() && indent + display_width(line) + 1 + display_width(word) > width) {
      out += margin + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return out + margin + line + "\n";
}

std::string format_count(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string counted(std::uint64_t number, const std::string& noun) {
  return format_count(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string part_of(Bytes done, Bytes total) {
  const std::string part = format_bytes(done), all = format_bytes(total);
  const std::size_t unit = part.find(' ');
  const bool same_unit = part.substr(unit) == all.substr(all.find(' '));
  return (same_unit ? part.substr(0, unit) : part) + " of " + all;
}

std::string format_left(std::chrono::seconds left) {
  const auto seconds = left.count();
  if (seconds < 60) return std::to_string(seconds) + " s";
  return format_duration(seconds < 120 ? left : std::chrono::seconds((seconds + 9) / 10 * 10));
}

std::string format_age(std::chrono::seconds age) {
  const long long seconds = std::max<long long>(0, age.count());
  const long long minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
  if (minutes == 0) return std::to_string(seconds) + " s";
  if (hours == 0) return std::to_string(minutes) + " min";
  if (days == 0) return std::to_string(hours) + " h " + std::to_string(minutes % 60) + " min";
  return std::to_string(days) + " d " + std::to_string(hours % 24) + " h";
}

std::string age_of(const std::optional<std::string>& time, WallTime now) {
  const auto parsed = time ? parse_rfc3339(*time) : std::nullopt;
  return parsed ? format_age(std::chrono::duration_cast<std::chrono::seconds>(now - *parsed)) : "-";
}

std::string time_until(const std::optional<std::string>& time, WallTime now) {
  const auto parsed = time ? parse_rfc3339(*time) : std::nullopt;
  return parsed ? format_age(std::chrono::duration_cast<std::chrono::seconds>(*parsed - now)) : "-";
}

}  // namespace spark::cli
