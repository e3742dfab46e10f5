// Numbers in text from files, messages and users.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace spark {

// None unless the whole text is a number that the type can hold.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The number at the start of the text, whatever follows it.
template <class Number>
std::optional<Number> leading_number(std::string_view text) {
  Number number{};
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) return std::nullopt;
  return number;
}

}  // namespace spark
