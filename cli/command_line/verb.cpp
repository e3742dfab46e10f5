#include "cli/command_line/verb.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/text.hpp"

namespace spark::cli {

using Words = std::vector<std::string>;

namespace {

constexpr char kBetweenChoices[] = "|";
constexpr char kHint[] = " - ";  // in a check's sentence, before the next step

// An empty word is no name and no path: to some verbs it would be the current folder.
std::string check_not_empty(const std::string& word) {
  return word.empty() ? std::string("it is empty") + kHint + "is a variable of a script not set?" : "";
}

}  // namespace

void Verb::flag(const std::string& name, bool& value, const std::string& help) {
  parser_->add_flag(name, value, help);
}

template <typename Value>
void Verb::argument(const std::string& name, Value& value, const std::string& help) {
  parser_->add_option(name, value, help)->required()->type_name("")->check(check_not_empty);
}

template <typename Value>
void Verb::optional_argument(const std::string& name, Value& value, const std::string& help) {
  parser_->add_option(name, value, help)->type_name("");
}

template <typename Value>
void Verb::option(const std::string& name, const std::string& type, Value& value, const std::string& help) {
  CLI::Option* option = parser_->add_option(name, value, help)->type_name(type);
  if constexpr (std::is_same_v<Value, Words>) option->expected(1)->take_all()->allow_extra_args(false);
}

void Verb::option_or(const std::string& name, const std::string& type, std::string& value,
                     const std::string& without, const std::string& help) {
  parser_->add_option(name, value, help)->type_name(type)->expected(0, 1)->default_str(without);
}

// The check takes the value too.
void Verb::checked(const std::string& name, const std::string& type,
                   const std::function<Result<>(const std::string&)>& take, const std::string& help) {
  const auto check = [take](const std::string& word) -> std::string {
    if (word.empty()) return "";
    const auto taken = take(word);
    return taken ? "" : taken.error().message();
  };
  const std::function<void(const std::string&)> nothing = [](const std::string&) {};
  parser_->add_option_function<std::string>(name, nothing, help)->type_name(type)->check(check);
}

// CLI11's words about a check are left out of the help: its description is empty.
void Verb::count(const std::string& name, unsigned& value, Range range, const std::string& help) {
  const auto check = [range](const std::string& word) -> std::string {
    const auto number = parse_number<unsigned>(word);
    if (number && *number >= range.lowest && *number <= range.highest) return "";
    return "'" + printable(word) + "' is not a number from " + std::to_string(range.lowest) + " to " +
           std::to_string(range.highest);
  };
  parser_->add_option(name, value, help)->type_name("N")->check(check);
}

// The choices are the check's name, for choices_of.
template <typename Value>
void Verb::choice(const std::string& name, const std::string& type, Value& value, const Words& choices,
                  const std::string& help) {
  const auto check = [choices](const std::string& word) -> std::string {
    if (std::ranges::find(choices, word) != choices.end()) return "";
    std::string near = nearest(word, choices);
    for (const std::string& choice : choices) {
      if (near.empty() && word.size() >= 3 && choice.find(word) != std::string::npos) near = choice;
    }
    return "'" + printable(word) + "' is none of " + join(choices, ", ") +
           (near.empty() ? "" : kHint + ("did you mean '" + near + "'?"));
  };
  CLI::Option* option = parser_->add_option(name, value, help)->type_name(type);
  option->check(CLI::Validator(check, "", join(choices, kBetweenChoices)));
  if constexpr (std::is_same_v<Value, Words>) option->expected(1)->take_all()->allow_extra_args(false);
}

Words choices_of(const CLI::Option& option) {
  try {
    // It has no const form.
    const std::string name = const_cast<CLI::Option&>(option).get_validator(0)->get_name();
    return name.empty() ? Words() : split(name, kBetweenChoices[0]);
  } catch (const CLI::OptionNotFound&) {
    return {};
  }
}

std::optional<Error> explain_value(const CLI::App& verb, const CLI::ParseError& error) {
  const std::string words = error.what(), kind = error.get_name();
  if (kind == "ConversionError") {  // "Could not convert: --port = x"
    const std::size_t name = words.find("--"), equals = words.find(" = ");
    if (name == std::string::npos || equals == std::string::npos) return std::nullopt;
    return Error{Errc::Invalid,
                 words.substr(name, equals - name) + ": '" + printable(words.substr(equals + 3)) +
                     "' is not a number that it takes",
                 ""};
  }
  const std::string name = words.substr(0, words.find(": "));
  if (kind == "ValidationError") {
    const std::size_t hint = words.find(kHint);
    return Error{Errc::Invalid, words.substr(0, hint),
                 hint == std::string::npos ? "" : words.substr(hint + std::strlen(kHint))};
  }
  const CLI::Option* option = name.starts_with('-') ? verb.get_option_no_throw(name) : nullptr;
  if (option == nullptr) return std::nullopt;
  if (kind != "ArgumentMismatch") return std::nullopt;
  Words given = option->results();
  for (const CLI::App* outer = verb.get_parent(); given.empty() && outer != nullptr;
       outer = outer->get_parent()) {
    const CLI::Option* same = outer->get_option_no_throw(name);  // before the verb's name
    if (same != nullptr) given = same->results();
  }
  if (given.empty())
    return Error{Errc::Invalid, name + " needs a value", name + " " + option->get_type_name()};
  return Error{Errc::Invalid, name + " is given " + (given.size() == 2 ? "twice" : "more than once"),
               "give it once"};
}

template void Verb::argument(const std::string&, std::string&, const std::string&);
template void Verb::argument(const std::string&, Words&, const std::string&);
template void Verb::optional_argument(const std::string&, std::string&, const std::string&);
template void Verb::optional_argument(const std::string&, Words&, const std::string&);
template void Verb::choice(const std::string&, const std::string&, std::string&, const Words&,
                           const std::string&);
template void Verb::choice(const std::string&, const std::string&, Words&, const Words&, const std::string&);
template void Verb::option(const std::string&, const std::string&, std::string&, const std::string&);
template void Verb::option(const std::string&, const std::string&, Words&, const std::string&);
template void Verb::option(const std::string&, const std::string&, std::uint16_t&, const std::string&);
template void Verb::option(const std::string&, const std::string&, std::uint32_t&, const std::string&);
template void Verb::option(const std::string&, const std::string&, std::uint64_t&, const std::string&);

}  // namespace spark::cli
