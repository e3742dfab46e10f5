// The parts of a name in a job's folder: for this folder's files.
#pragma once

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>
#include <string_view>

namespace spark::staging::name_parts {

using Texts = std::initializer_list<std::string_view>;

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
inline bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}
inline bool begins_with_any(std::string_view name, Texts texts) {
  return std::ranges::any_of(texts, [&](auto text) { return name.starts_with(text); });
}
inline bool ends_with_any(std::string_view name, Texts texts) {
  return std::ranges::any_of(texts, [&](auto text) { return name.ends_with(text); });
}
inline bool is_any(std::string_view name, Texts texts) {
  return std::ranges::find(texts, name) != texts.end();
}
inline bool are_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

std::string_view without_end(std::string_view name);  // without ".pt", ".ckpt" …
// Where 20261127_103000 or 2026-11-27 begins, as in the names of folders of logs; npos if it has none.
std::size_t date_in(std::string_view name);
inline bool has_date(std::string_view name) {
  return date_in(name) != std::string_view::npos;
}
// last.ckpt, latest.pt, best.pt.
inline bool is_alias(std::string_view lowered) {
  return begins_with_any(lowered, {"last", "latest", "best"});
}

}  // namespace spark::staging::name_parts
