// Small text work shared by parsers and messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spark {

std::string_view trim(std::string_view text);
std::string lower(std::string_view text);  // ASCII alone
std::vector<std::string> split(std::string_view text, char separator);
std::string environment(const char* name);  // of this process; empty also if it is not set
std::string join(std::span<const std::string> parts, std::string_view separator);

// With \ooo decoded, as the kernel's mount table and fstab write a space, a tab or a backslash.
std::string decode_octal(std::string_view text);

// Of whole names: "/a/b" is below "/a", "/ab" is not. Nothing but "/" itself is at or below "/".
bool is_at_or_below(std::string_view path, std::string_view folder);

// A name from outside (file, NQN, address) made safe for a terminal, a log and JSON: control characters and
// bytes that are not UTF-8 become \xNN. Printable UTF-8 stays unchanged.
std::string printable(std::string_view name);

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
