#include "base/json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.hpp"

namespace spark {
namespace {

// "1e999" is parsed as infinity, which is printed as a word that is not JSON: such a document is refused. The
// parser's limit on depth bounds the recursion.
bool numbers_are_finite(const json::value& value) {
  if (const double* number = value.if_double()) return std::isfinite(*number);
  if (const auto* array = value.if_array())
    return std::all_of(array->begin(), array->end(), numbers_are_finite);
  if (const auto* object = value.if_object()) {
    return std::all_of(object->begin(), object->end(),
                       [](const auto& member) { return numbers_are_finite(member.value()); });
  }
  return true;
}

}  // namespace

Result<json::value> parse_json(std::string_view text) {
  json::parse_options options;
  options.allow_invalid_utf8 = true;
  boost::system::error_code error;
  json::value value = json::parse({text.data(), text.size()}, error, {}, options);
  if (error) return fail(Errc::Invalid, "reading JSON: " + error.message());
  if (!numbers_are_finite(value)) return fail(Errc::Invalid, "reading JSON: a number is out of range");
  return value;
}

Result<json::object> parse_json_object(std::string_view text) {
  auto value = parse_json(text);
  if (!value) return value.take_error();
  if (!value->is_object()) return fail(Errc::Invalid, "reading JSON: not an object");
  return std::move(value->as_object());
}

std::optional<std::string> get_string(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains({key.data(), key.size()});
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string(value->get_string());
}

namespace {

template <typename Number>
std::optional<Number> get_number(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains({key.data(), key.size()});
  if (value == nullptr) return std::nullopt;
  boost::system::error_code error;
  const auto number = value->to_number<Number>(error);
  return error ? std::nullopt : std::optional(number);
}

}  // namespace

std::optional<std::int64_t> get_int(const json::object& object, std::string_view key) {
  return get_number<std::int64_t>(object, key);
}

std::uint64_t get_count(const json::object& object, std::string_view key) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, get_int(object, key).value_or(0)));
}

std::optional<double> get_double(const json::object& object, std::string_view key) {
  return get_number<double>(object, key);
}

std::optional<bool> get_bool(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains({key.data(), key.size()});
  if (value == nullptr || !value->is_bool()) return std::nullopt;
  return value->get_bool();
}

const json::object* get_object(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains({key.data(), key.size()});
  return value == nullptr ? nullptr : value->if_object();
}

const json::array* get_array(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains({key.data(), key.size()});
  return value == nullptr ? nullptr : value->if_array();
}

std::string get_text(const json::object& object, std::string_view key) {
  return get_string(object, key).value_or("");
}

const json::array& get_list(const json::object& object, std::string_view key) {
  static const json::array kNone;
  const json::array* array = get_array(object, key);
  return array == nullptr ? kNone : *array;
}

std::string get_shown(const json::object& object, std::string_view key) {
  return printable(get_text(object, key));
}

std::vector<std::string> get_strings(const json::object& object, std::string_view key) {
  std::vector<std::string> texts;
  for (const json::value& value : get_list(object, key))
    if (const json::string* text = value.if_string()) texts.emplace_back(text->data(), text->size());
  return texts;
}

std::vector<std::string> get_printable(const json::object& object, std::string_view key) {
  std::vector<std::string> texts = get_strings(object, key);
  for (std::string& text : texts) text = printable(text);
  return texts;
}

std::vector<std::reference_wrapper<const json::object>> objects_in(const json::object& object,
                                                                   std::string_view key) {
  std::vector<std::reference_wrapper<const json::object>> objects;
  for (const json::value& value : get_list(object, key))
    if (const json::object* one = value.if_object()) objects.emplace_back(*one);
  return objects;
}

json::value or_null(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

json::object to_json(const Error& error) {
  json::object object{{"kind", to_string(error.kind)}, {"what", error.what}, {"hint", error.hint}};
  if (error.is_away) object["is_away"] = true;
  return object;
}

Error error_from_json(const json::object& object) {
  return {errc_from_string(get_string(object, "kind").value_or("failed")),
          get_string(object, "what").value_or("an error without a message"),
          get_string(object, "hint").value_or(""), 0, get_bool(object, "is_away").value_or(false)};
}

namespace {

// The shortest that is read back as the same double; the library would write 12.5 as 1.25E1.
std::string decimal(double number) {
  char digits[32];
  std::string text(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

void write_pretty(const json::value& value, std::string& out, std::size_t indent) {
  const std::string inner(indent + 2, ' ');
  const auto close = [&](char bracket) { out += "\n" + std::string(indent, ' ') + bracket; };
  if (const auto* object = value.if_object(); object != nullptr && !object->empty()) {
    out += "{";
    bool first = true;
    for (const auto& [key, member] : *object) {
      out += (first ? "\n" : ",\n") + inner + json::serialize(json::string(key)) + ": ";
      write_pretty(member, out, indent + 2);
      first = false;
    }
    close('}');
  } else if (const auto* array = value.if_array(); array != nullptr && !array->empty()) {
    out += "[";
    bool first = true;
    for (const json::value& element : *array) {
      out += (first ? "\n" : ",\n") + inner;
      write_pretty(element, out, indent + 2);
      first = false;
    }
    close(']');
  } else if (const double* number = value.if_double(); number != nullptr && std::isfinite(*number)) {
    out += decimal(*number);
  } else {
    out += json::serialize(value);
  }
}

}  // namespace

std::string pretty(const json::value& value) {
  std::string out;
  write_pretty(value, out, 0);
  return out;
}

}  // namespace spark
