// A verb's options and arguments. CLI11, which is slow to compile, is included by app.cpp and verb.cpp alone.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): its own name
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace spark::cli {

// A handle. The variables that it fills in (`value`) must live as long as the App.
class Verb {
 public:
  explicit Verb(CLI::App& parser) : parser_(&parser) {}

  void flag(const std::string& name, bool& value, const std::string& help);

  // A word, a list of words or a number without a dash before it: it has to be there, or may be left out.
  template <typename Value>
  void argument(const std::string& name, Value& value, const std::string& help);
  template <typename Value>
  void optional_argument(const std::string& name, Value& value, const std::string& help);

  // --name TYPE; of a list: may be repeated, one value each time.
  template <typename Value>
  void option(const std::string& name, const std::string& type, Value& value, const std::string& help);

  // --name TYPE, as `parse` reads it: a Result of the value. An empty word leaves the value as it is, for
  // scripts with a variable that may be empty.
  template <typename Value, typename Parse>
  void parsed(const std::string& name, const std::string& type, Value& value, Parse parse,
              const std::string& help) {
    const auto take = [&value, parse](const std::string& word) {
      auto taken = parse(word);
      if (taken) value = std::move(*taken);
      return taken ? Result<>() : taken.take_error();
    };
    checked(name, type, take, help);
  }

  // --name[=TYPE]: `without` when no value is given with it.
  void option_or(const std::string& name, const std::string& type, std::string& value,
                 const std::string& without, const std::string& help);

  struct Range {
    unsigned lowest, highest;
  };
  void count(const std::string& name, unsigned& value, Range range, const std::string& help);
  // One of some words, or a list of them.
  template <typename Value>
  void choice(const std::string& name, const std::string& type, Value& value,
              const std::vector<std::string>& choices, const std::string& help);

 private:
  friend class App;
  void checked(const std::string& name, const std::string& type,
               const std::function<Result<>(const std::string&)>& take, const std::string& help);

  CLI::App* parser_;
};

// The words that an option of choice() takes; of any other: none.
std::vector<std::string> choices_of(const CLI::Option& option);

// The error in the value of one of the verb's options; no value: the error is another one.
std::optional<Error> explain_value(const CLI::App& verb, const CLI::ParseError& error);

}  // namespace spark::cli
