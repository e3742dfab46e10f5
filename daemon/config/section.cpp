#include "daemon/config/section.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "base/units.hpp"
#include "daemon/config/values.hpp"

namespace spark::config {
namespace {

const char* kind_name(const Node& node) {
  constexpr std::array kNames = {"nothing", "a single value", "a list", "a mapping"};
  return kNames[static_cast<std::size_t>(node.kind)];
}

}  // namespace

Section::Section(const Node& node, std::string path, Problems& problems)
    : node_(node), path_(std::move(path)), problems_(problems) {
  if (node_.kind == Node::Kind::Map) return;
  const std::string what = path_.empty() ? "the config" : path_;
  problems_.add(node_.at, what + ": has to be a mapping of keys to values, not " + kind_name(node_));
}

Section::~Section() {
  for (const Member& member : node_.members) {
    if (std::find(asked_.begin(), asked_.end(), member.key) != asked_.end()) continue;
    const std::string place = path_.empty() ? "" : " in " + path_;
    problems_.add(member.at, "unknown key " + quote(member.key) + place +
                                 (problems_.are_many() ? "" : did_you_mean(member.key, asked_)));
  }
}

bool Section::has(std::string_view key) {
  asked_.emplace_back(key);
  return find(key) != nullptr;
}

const Member* Section::find(std::string_view key) const {
  const auto at = std::find_if(node_.members.begin(), node_.members.end(),
                               [&](const Member& member) { return member.key == key; });
  return at == node_.members.end() ? nullptr : &*at;
}

const Node* Section::ask(std::string_view key) {
  return has(key) ? &find(key)->value : nullptr;
}

std::optional<std::string> Section::text(std::string_view key) {
  const Node* value = ask(key);
  if (value == nullptr) return std::nullopt;
  if (value->kind != Node::Kind::Scalar) {
    problem(key, std::string("has to be a single value, not ") + kind_name(*value));
    return std::nullopt;
  }
  // Escapes in quoted YAML can produce characters that are not allowed in the file.
  if (printable(value->text) != value->text || value->text.empty()) {
    problem(key, value->text.empty() ? "is empty" : "holds a control character: " + quote(value->text));
    return std::nullopt;
  }
  return value->text;
}

std::optional<std::int64_t> Section::integer(std::string_view key, std::int64_t least, std::int64_t most) {
  const auto value = text(key);
  if (!value) return std::nullopt;
  const auto number = parse_number<std::int64_t>(*value);
  if (number && *number >= least && *number <= most) return number;
  problem(key, quote(*value) + " is not a whole number from " + std::to_string(least) + " to " +
                   std::to_string(most));
  return std::nullopt;
}

std::optional<unsigned> Section::count_or_auto(std::string_view key, unsigned most) {
  const auto value = text(key);
  if (!value) return std::nullopt;
  if (*value == "auto") return 0;
  if ((*value)[0] < '0' || (*value)[0] > '9') {
    problem(key, quote(*value) + " is neither 'auto' nor a number from 1 to " + std::to_string(most));
    return std::nullopt;
  }
  const auto number = integer(key, 1, most);
  return number ? std::optional(static_cast<unsigned>(*number)) : std::nullopt;
}

std::optional<bool> Section::boolean(std::string_view key) {
  return choice<bool>(key, {{"true", true}, {"false", false}});
}

std::vector<std::string> Section::texts(std::string_view key) {
  const Node* value = ask(key);
  if (value == nullptr) return {};
  if (value->kind != Node::Kind::List) {
    problem(key, std::string("has to be a list, as in [a, b], not ") + kind_name(*value));
    return {};
  }
  std::vector<std::string> all;
  for (const Node& item : value->items) {
    const bool usable =
        item.kind == Node::Kind::Scalar && !item.text.empty() && printable(item.text) == item.text;
    if (usable) {
      all.push_back(item.text);
    } else {
      problems_.add(item.at, path_of(key) + ": every entry has to be a word, without control characters");
    }
  }
  return all;
}

std::vector<std::string> Section::words(std::string_view key) {
  const Node* value = ask(key);
  if (value == nullptr || value->kind == Node::Kind::List) return texts(key);
  const auto one = text(key);
  return one ? std::vector{*one} : std::vector<std::string>();
}

bool Section::is_empty_list(std::string_view key) {
  const Node* value = ask(key);
  return value != nullptr && value->kind == Node::Kind::List && value->items.empty();
}

std::optional<seconds> Section::duration(std::string_view key, seconds least, seconds most) {
  const auto value = checked<Duration>(key, parse_duration);
  if (!value) return std::nullopt;
  const auto whole = std::chrono::duration_cast<seconds>(*value);
  if (whole == *value && whole >= least && whole <= most) return whole;
  problem(key, "has to be whole seconds from " + std::to_string(least.count()) + "s to " +
                   std::to_string(most.count()) + "s");
  return std::nullopt;
}

std::optional<seconds> Section::duration_or(std::string_view key, std::string_view word, seconds least,
                                            seconds most) {
  const auto value = text(key);
  if (!value || *value == word) return std::nullopt;
  if (!accept(key, parse_optional_duration(*value, word))) return std::nullopt;
  return duration(key, least, most);
}

const Node* Section::map(std::string_view key) {
  const Node* value = ask(key);
  return value == nullptr || value->kind == Node::Kind::Null ? nullptr : value;
}

void Section::problem(std::string_view key, const std::string& sentence) {
  problems_.add(position_of(key), path_of(key) + ": " + sentence);
}

void Section::missing(std::string_view key, const std::string& hint) {
  // A section that is not a mapping has already been reported.
  if (node_.kind == Node::Kind::Map) problem(key, "is missing; " + hint);
}

Position Section::position_of(std::string_view key) const {
  const Member* member = find(key);
  return member == nullptr ? node_.at : member->value.at;
}

std::string Section::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void Section::not_among(std::string_view key, const std::string& value,
                        const std::vector<std::string>& known) {
  problem(key, quote(value) + " is not one of " + join(known, ", ") + did_you_mean(value, known));
}

bool is_name(std::string_view name) {
  const auto letter_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const auto inner = [&](char c) { return letter_or_digit(c) || c == '.' || c == '_' || c == '-'; };
  return !name.empty() && name.size() <= 64 && letter_or_digit(name[0]) &&
         std::all_of(name.begin(), name.end(), inner);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  // With very many names only the first are compared.
  constexpr std::size_t kMostCompared = 200;
  const std::string near = nearest(word, std::span(known).first(std::min(known.size(), kMostCompared)));
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

}  // namespace spark::config
