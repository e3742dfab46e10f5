// One mapping of the file, read key by key. A key that no getter has read is an unknown key.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "daemon/config/model.hpp"
#include "daemon/config/problems.hpp"
#include "daemon/config/yaml.hpp"

namespace spark::config {

using std::chrono::seconds;

// "; did you mean 'x'?" or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

// All getters return no value if the key is absent, or if its value is wrong; a wrong value is also added to
// the problems. Owns nothing: node and problems outlive it.
class Section {
 public:
  // `path` as in "targets.rose", empty at the top level; it begins every message.
  Section(const Node& node, std::string path, Problems& problems);
  // Reports the keys that no getter has read, each with the most similar known key.
  ~Section();
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

  bool has(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t least, std::int64_t most);
  // From 1 to `most`; 0 for the word "auto".
  std::optional<unsigned> count_or_auto(std::string_view key, unsigned most);
  std::optional<bool> boolean(std::string_view key);
  std::vector<std::string> texts(std::string_view key);
  std::vector<std::string> words(std::string_view key);  // the same, or one text
  bool is_empty_list(std::string_view key);
  // Whole seconds within [least, most].
  std::optional<seconds> duration(std::string_view key, seconds least, seconds most);
  // The same, or none for the given word ("never", "off").
  std::optional<seconds> duration_or(std::string_view key, std::string_view word, seconds least,
                                     seconds most);
  // The text, converted by `check`; its error is reported here.
  template <class T>
  std::optional<T> checked(std::string_view key, const std::function<Result<T>(std::string_view)>& check) {
    const auto value = text(key);
    if (!value) return std::nullopt;
    return accept(key, check(*value));
  }
  template <class T>
  std::optional<T> choice(std::string_view key, const std::vector<std::pair<std::string, T>>& words) {
    const auto value = text(key);
    if (!value) return std::nullopt;
    std::vector<std::string> known;
    for (const auto& [word, meaning] : words) {
      if (word == *value) return meaning;
      known.push_back(word);
    }
    not_among(key, *value, known);
    return std::nullopt;
  }
  // One of kWords: the default if the key is absent, or its value is wrong.
  template <class Choice>
  Choice one_of(std::string_view key) {
    std::vector<std::pair<std::string, Choice>> words;
    for (const char* word : kWords<Choice>) words.emplace_back(word, static_cast<Choice>(words.size()));
    return choice<Choice>(key, words).value_or(Choice{});
  }
  // A mapping below, or none if it is absent or empty.
  const Node* map(std::string_view key);

  // The value; an error becomes a problem with that key.
  template <class T>
  std::optional<T> accept(std::string_view key, Result<T> value) {
    if (value) return std::move(*value);
    problem(key, value.error().message());
    return std::nullopt;
  }
  // At the key's value; at the section itself if the key is absent.
  void problem(std::string_view key, const std::string& sentence);
  void missing(std::string_view key, const std::string& hint);
  // The value names no `what`. `known`: those that there are, each with its name by `name_of`.
  template <class Known, class NameOf>
  void no_such(std::string_view key, const std::string& what, const std::string& name, const Known& known,
               NameOf name_of) {
    std::vector<std::string> names;
    if (!problems_.are_many())
      for (const auto& one : known) names.push_back(std::invoke(name_of, one));
    problem(key, "there is no " + what + " '" + name + "'" + did_you_mean(name, names));
  }
  Position position_of(std::string_view key) const;
  std::string path_of(std::string_view key) const;

 private:
  const Member* find(std::string_view key) const;
  const Node* ask(std::string_view key);
  void not_among(std::string_view key, const std::string& value, const std::vector<std::string>& known);

  const Node& node_;
  std::string path_;
  Problems& problems_;
  std::vector<std::string> asked_;
};

// A name of a target, volume or dataset: letters, digits and . _ - after a first letter or digit, at most 64.
bool is_name(std::string_view name);

}  // namespace spark::config
