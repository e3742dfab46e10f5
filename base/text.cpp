#include "base/text.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>

namespace spark {
namespace {

// The length of the valid UTF-8 sequence at the front of `text`; 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  std::uint32_t code = lead & (0x7F >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  const bool c1_control = code >= 0x80 && code < 0xA0;
  return overlong || surrogate || code > 0x10FFFF || c1_control ? 0 : length;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

bool starts_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

// The byte at which column `column` begins.
std::size_t byte_of_column(std::string_view text, std::size_t column) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (starts_character(text[i]) && column-- == 0) return i;
  }
  return text.size();
}

}  // namespace

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string decode_octal(std::string_view text) {
  const auto octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escaped = text[i] == '\\' && i + 3 < text.size() && text[i + 1] <= '3' && octal(text[i + 1]) &&
                         octal(text[i + 2]) && octal(text[i + 3]);
    if (!escaped) {
      plain += text[i];
      continue;
    }
    plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return plain;
}

bool is_at_or_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string all;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) all += separator;
    all += part;
  }
  return all;
}

std::string join_first(std::span<const std::string> parts, std::size_t most, std::string_view separator) {
  const auto named = parts.first(std::min(parts.size(), most));
  const std::size_t more = parts.size() - named.size();
  return join(named, separator) + (more == 0 ? "" : " and " + std::to_string(more) + " more");
}

std::string hex_of(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    const auto value = std::to_integer<unsigned>(byte);
    (text += kHexDigits[value >> 4]) += kHexDigits[value & 15];
  }
  return text;
}

std::string format_uuid(std::span<const std::byte> bytes) {
  std::string text = hex_of(bytes);
  for (const std::size_t dash : {8, 13, 18, 23}) text.insert(dash, 1, '-');
  return text;
}

std::string printable(std::string_view name) {
  std::string safe;
  while (!name.empty()) {
    const auto first = static_cast<std::uint8_t>(name[0]);
    const std::size_t length = first < 0x20 || first == 0x7F ? 0 : utf8_length(name);
    if (length == 0) {
      safe += "\\x" + hex_of(std::as_bytes(std::span(name.data(), 1)));
      name.remove_prefix(1);
    } else {
      safe += name.substr(0, length);
      name.remove_prefix(length);
    }
  }
  return safe;
}

std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,@%:";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLongestWord = 256;  // a comparison costs the product of two lengths
  if (word.size() > kLongestWord) return {};
  std::string best;
  // A short word may differ by one edit only: "volumes ls" does not mean "up".
  const std::size_t most = word.size() < 4 ? 1 : std::max<std::size_t>(2, word.size() / 3);
  std::size_t best_distance = most + 1;
  for (const std::string& candidate : candidates) {
    // Each surplus letter is an edit.
    const std::size_t less = std::min(word.size(), candidate.size());
    const std::size_t more = std::max(word.size(), candidate.size());
    if (more - less >= best_distance) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::uint64_t last_number_in(std::string_view name) {
  constexpr std::uint64_t kMost = 1'000'000'000'000'000'000;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t end = name.size();
  while (end > 0 && !is_digit(name[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_digit(name[begin - 1])) --begin;
  std::uint64_t number = 0;
  for (std::size_t i = begin; i < end && number < kMost / 10; ++i)
    number = number * 10 + static_cast<std::uint64_t>(name[i] - '0');
  return number;
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

std::string shorten(const std::string& text, std::size_t width) {
  const std::size_t all = display_width(text);
  if (all <= width) return text;
  if (width < 3) return text.substr(0, byte_of_column(text, width));
  const std::size_t front = width / 2, back = width - front - 1;
  return text.substr(0, byte_of_column(text, front)) + "…" + text.substr(byte_of_column(text, all - back));
}

std::string cut_short(const std::string& text, std::size_t width) {
  if (display_width(text) <= width) return text;
  return text.substr(0, byte_of_column(text, width > 0 ? width - 1 : 0)) + (width > 0 ? "…" : "");
}

}  // namespace spark
