// Structs as JSON and back, from one list of their fields (Boost.Describe), for messages between processes of
// one program: no version, no tolerance. A field that is missing in the list does not compile, and one that
// is missing in a message is an error.
#pragma once

#include <boost/describe.hpp>
#include <boost/mp11.hpp>
#include <boost/pfr.hpp>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json.hpp"

// SPARK_MESSAGE(Portal, (address, port)): beside the struct's namespace, in the order of its declaration.
#define SPARK_MESSAGE(Type, Fields)                                                                        \
  BOOST_DESCRIBE_STRUCT(Type, (), Fields)                                                                  \
  static_assert(                                                                                           \
      boost::mp11::mp_size<boost::describe::describe_members<Type, boost::describe::mod_public>>::value == \
          boost::pfr::tuple_size_v<Type>,                                                                  \
      "a field of " #Type " is not in its list")

namespace spark {

// The number of a struct's fields, for lists that must have them all.
template <class T>
inline constexpr std::size_t kFieldCount = boost::pfr::tuple_size_v<T>;

template <class T>
concept Described = boost::describe::has_describe_members<T>::value;

template <Described T>
json::object to_message(const T& value);

namespace described {

template <class T>
using Fields = boost::describe::describe_members<T, boost::describe::mod_public>;

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsMap = false;
template <class Key, class T>
inline constexpr bool kIsMap<std::map<Key, T>> = true;

template <class T>
json::value to_value(const T& field) {
  if constexpr (Described<T>) {
    return to_message(field);
  } else if constexpr (kIsOptional<T>) {
    return field ? to_value(*field) : json::value(nullptr);
  } else if constexpr (kIsVector<T>) {
    json::array all;
    for (const auto& one : field) all.push_back(to_value(one));
    return all;
  } else if constexpr (kIsMap<T>) {
    json::array pairs;
    for (const auto& [key, one] : field) pairs.push_back(json::array{to_value(key), to_value(one)});
    return pairs;
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return json::value(field.native());
  } else if constexpr (std::is_same_v<T, std::chrono::seconds>) {
    return json::value(field.count());
  } else if constexpr (std::is_enum_v<T>) {
    return json::value(static_cast<std::int64_t>(field));
  } else {
    return json::value(field);
  }
}

// False: it is of another type, or out of range.
template <class T>
bool read(const json::value& value, T& field) {
  if constexpr (Described<T>) {
    bool is_whole = value.is_object();
    boost::mp11::mp_for_each<Fields<T>>([&](auto member) {
      const json::value* found = is_whole ? value.get_object().if_contains(member.name) : nullptr;
      is_whole = found != nullptr && read(*found, field.*member.pointer);
    });
    return is_whole;
  } else if constexpr (kIsOptional<T>) {
    if (value.is_null()) field.reset();
    return value.is_null() || read(value, field.emplace());
  } else if constexpr (kIsVector<T>) {
    field.clear();
    bool is_whole = value.is_array();
    for (std::size_t at = 0; is_whole && at < value.get_array().size(); ++at)
      is_whole = read(value.get_array()[at], field.emplace_back());
    return is_whole;
  } else if constexpr (kIsMap<T>) {
    field.clear();
    bool is_whole = value.is_array();
    for (std::size_t at = 0; is_whole && at < value.get_array().size(); ++at) {
      const json::array* pair = value.get_array()[at].if_array();
      typename T::key_type key{};
      is_whole =
          pair != nullptr && pair->size() == 2 && read((*pair)[0], key) && read((*pair)[1], field[key]);
    }
    return is_whole;
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::filesystem::path>) {
    if (value.is_string()) field = std::string(value.get_string());
    return value.is_string();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (value.is_bool()) field = value.get_bool();
    return value.is_bool();
  } else if constexpr (std::is_same_v<T, std::chrono::seconds>) {
    std::int64_t count = 0;
    const bool is_number = read(value, count);
    field = std::chrono::seconds(count);
    return is_number;
  } else if constexpr (std::is_enum_v<T>) {
    std::underlying_type_t<T> number{};
    const bool is_number = read(value, number);
    field = static_cast<T>(number);
    return is_number;
  } else {
    boost::system::error_code error;
    field = value.to_number<T>(error);
    return !error;
  }
}

}  // namespace described

template <Described T>
json::object to_message(const T& value) {
  json::object object;
  boost::mp11::mp_for_each<described::Fields<T>>(
      [&](auto member) { object[member.name] = described::to_value(value.*member.pointer); });
  return object;
}

// A field that is missing, or of another type, keeps its default: for records of other versions.
template <Described T>
void read_present(const json::object& object, T& record) {
  boost::mp11::mp_for_each<described::Fields<T>>([&](auto member) {
    const json::value* value = object.if_contains(member.name);
    auto field = record.*member.pointer;
    if (value != nullptr && described::read(*value, field)) record.*member.pointer = std::move(field);
  });
}

// Failed: a field is missing, or of another type.
template <class T>
Result<T> from_message(const json::value& value) {
  T message{};
  if (described::read(value, message)) return message;
  return fail(Errc::Failed, "a message between parts of spark-stage makes no sense");
}

}  // namespace spark
