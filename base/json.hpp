// Boost.JSON with our errors. Requests and answers between processes are small objects.
#pragma once

#include <boost/json.hpp>
#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace spark {

namespace json = boost::json;

// Names may hold bytes that are not UTF-8: they pass through unchanged between our own processes.
Result<json::value> parse_json(std::string_view text);
Result<json::object> parse_json_object(std::string_view text);

// A member, or no value if it is absent or of another type.
std::optional<std::string> get_string(const json::object& object, std::string_view key);
std::string get_text(const json::object& object, std::string_view key);   // a string; empty instead of none
std::string get_shown(const json::object& object, std::string_view key);  // the same, printable()
std::optional<std::int64_t> get_int(const json::object& object, std::string_view key);
std::uint64_t get_count(const json::object& object, std::string_view key);  // 0 instead of none, or of less
std::optional<double> get_double(const json::object& object, std::string_view key);
std::optional<bool> get_bool(const json::object& object, std::string_view key);
const json::object* get_object(const json::object& object, std::string_view key);
const json::array* get_array(const json::object& object, std::string_view key);
// An empty array instead of none. It is part of `object`.
const json::array& get_list(const json::object& object, std::string_view key);
const json::array& get_list(const json::object&& object, std::string_view key) = delete;
// The strings in an array; none if it is absent.
std::vector<std::string> get_strings(const json::object& object, std::string_view key);
// As get_strings, each as printable() shows it.
std::vector<std::string> get_printable(const json::object& object, std::string_view key);
// The objects in an array, without what else is in it; none if it is absent. They are parts of `object`.
std::vector<std::reference_wrapper<const json::object>> objects_in(const json::object& object,
                                                                   std::string_view key);
std::vector<std::reference_wrapper<const json::object>> objects_in(const json::object&& object,
                                                                   std::string_view key) = delete;

// null instead of no value, of an empty text, or of 0.
template <class T>
json::value or_null(const std::optional<T>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}
json::value or_null(const std::string& text);
template <std::unsigned_integral Number>
json::value or_null(Number number) {
  return number == 0 ? json::value(nullptr) : json::value(number);
}

// {"kind", "what", "hint"}
json::object to_json(const Error& error);
Error error_from_json(const json::object& object);

// Two-space indented, for readers of --json.
std::string pretty(const json::value& value);

}  // namespace spark
