// Writes a record's fields as JSON.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "bench/record/fields.hpp"

namespace spark::bench {

class FieldWriter {
 public:
  static constexpr bool kWrites = true;
  explicit FieldWriter(json::object& to) : to_(to) {}

  template <class T>
  void operator()(const char* key, const T& field) const {
    to_[key] = value_of(field);
  }
  template <Listed T>
  void operator()(const char* key, const std::optional<T>& field) const {
    if (field) to_[key] = value_of(*field);
  }
  void object(const char* key, const auto& more) const {
    json::object inner;
    more(FieldWriter(inner));
    to_[key] = std::move(inner);
  }
  template <class T>
  void part(const std::optional<T>& field, const char* /*proof*/) const {
    if (field) visit_fields(*field, *this);
  }
  template <class Enum>
  void choice(const char* key, const Enum& field, std::initializer_list<Enum> /*values*/) const {
    to_[key] = to_string(field);
  }
  void either(const char* key, bool field, const char* yes, const char* no) const {
    to_[key] = field ? yes : no;
  }
  void text(const char* key, std::uint64_t field) const { to_[key] = std::to_string(field); }
  template <class T>
  void derived(const char* key, T value) const {
    to_[key] = value;
  }

  template <Listed T>
  static json::value value_of(const T& record) {
    json::object object;
    visit_fields(record, FieldWriter(object));
    return object;
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  static json::value value_of(T number) { return json::value(number); }
  static json::value value_of(const std::string& text) { return json::value(printable(text)); }
  static json::value value_of(WallTime time) { return json::value(rfc3339_millis(time)); }
  static json::value value_of(std::chrono::seconds time) { return json::value(time.count()); }
  static json::value value_of(const std::optional<Bytes>& bytes) { return or_null(bytes); }
  static json::value value_of(const Bins& bins) {
    json::object object;
    for (const auto& [nanoseconds, count] : bins) object[std::to_string(nanoseconds)] = count;
    return object;
  }
  static json::value value_of(const std::vector<std::pair<std::string, std::string>>& settings) {
    json::object object;
    for (const auto& [name, value] : settings) object[name] = printable(value);
    return object;
  }
  template <class T>
  static json::value value_of(const std::vector<T>& all) {
    json::array array;
    for (const T& one : all) array.push_back(value_of(one));
    return array;
  }

 private:
  json::object& to_;
};

}  // namespace spark::bench
