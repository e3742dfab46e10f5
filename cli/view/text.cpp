#include "cli/view/text.hpp"

#include <algorithm>
#include <vector>

#include "base/text.hpp"

namespace spark::cli {

namespace {

constexpr std::size_t kLongestQuote = 60;  // of a quoted text that may be no command

// Words, and quotations that are short enough, at their spaces.
std::vector<std::string> pieces_of(std::string_view text) {
  std::vector<std::string> pieces;
  const std::vector<std::string> words = split(text, ' ');
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string piece = words[i];
    const char quote = piece.empty() ? '\0' : piece.front();
    if (quote == '`' || quote == '\'') {
      std::string quoted = piece;
      std::size_t last = i;
      while (quoted.find(quote, 1) == std::string::npos && ++last < words.size()) quoted += " " + words[last];
      if (last < words.size() && (quote == '`' || display_width(quoted) <= kLongestQuote)) {
        piece = quoted;
        i = last;
      }
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

std::string broken(std::string_view text, std::size_t width, std::size_t first_indent, std::size_t indent) {
  std::string margin(first_indent, ' '), out, line;
  for (const std::string& piece : pieces_of(text)) {
    if (!line.empty() && margin.size() + display_width(line) + 1 + display_width(piece) > width) {
      out += margin + line + "\n";
      line.clear();
      margin.assign(indent, ' ');
    }
    line += (line.empty() ? "" : " ") + piece;
  }
  return out + margin + line + "\n";
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  return broken(text, width, indent, indent);
}

std::string sentence(std::string_view text, std::size_t columns, bool is_terminal) {
  if (!is_terminal) return std::string(text) + "\n";
  std::string out;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    out += broken(std::string_view(line).substr(indent), columns, indent, indent + 2);
  }
  return out;
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
