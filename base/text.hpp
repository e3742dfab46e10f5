// Small text work shared by parsers and messages.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace spark {

std::string_view trim(std::string_view text);
std::string lower(std::string_view text);  // ASCII alone
std::vector<std::string> split(std::string_view text, char separator);
std::string environment(const char* name);  // of this process; empty also if it is not set
std::string join(std::span<const std::string> parts, std::string_view separator);
// "a, b and 3 more": at most so many are named.
std::string join_first(std::span<const std::string> parts, std::size_t most,
                       std::string_view separator = ", ");

// Nothing when the text is more than the number, or none. `how`: the base, or std::chars_format.
template <class Number, class... How>
std::optional<Number> parse_number(std::string_view text, How... how) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, number, how...);
  return error == std::errc() && parsed == end ? std::optional(number) : std::nullopt;
}

// The number at the start of the text, whatever follows it.
template <class Number>
std::optional<Number> leading_number(std::string_view text) {
  Number number{};
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() ? std::optional(number) : std::nullopt;
}

inline constexpr std::string_view kHexDigits = "0123456789abcdef";
std::string hex_of(std::span<const std::byte> bytes);  // two digits for each
// "2f7c1c0e-8d0b-4c39-9e0a-3f6c2b7d5a10", of its 16 bytes.
std::string format_uuid(std::span<const std::byte> bytes);

// With \ooo decoded, as the kernel's mount table and fstab write a space, a tab or a backslash.
std::string decode_octal(std::string_view text);

// Of whole names: "/a/b" is below "/a", "/ab" is not. Nothing but "/" itself is at or below "/".
bool is_at_or_below(std::string_view path, std::string_view folder);

// A name from outside (file, NQN, address) made safe for a terminal, a log and JSON: control characters and
// bytes that are not UTF-8 become \xNN. Printable UTF-8 stays unchanged.
std::string printable(std::string_view name);

// As a word of a command that a shell reads: in quotes if it has more than letters, digits and _-+=./,@%:
std::string shell_word(std::string_view word);

// The last number in a name, such as 1000 in "step-1000"; none: 0.
std::uint64_t last_number_in(std::string_view name);

// The candidate nearest to `word` by edits, or empty when none is near enough for a "did you mean".
std::string nearest(std::string_view word, std::span<const std::string> candidates);

// Columns on a terminal: code points of UTF-8 (a double-width character counts once).
std::size_t display_width(std::string_view text);

// At most `width` columns: the middle gives way to "…", since names differ at both ends.
std::string shorten(const std::string& text, std::size_t width);

// The same, but the end gives way: for sentences.
std::string cut_short(const std::string& text, std::size_t width);

}  // namespace spark
