#include "cli/verb.hpp"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <type_traits>

namespace spark::cli {

using Words = std::vector<std::string>;

void Verb::flag(const std::string& name, bool& value, const std::string& help) {
  parser_->add_flag(name, value, help);
}

template <typename Value>
void Verb::argument(const std::string& name, Value& value, const std::string& help) {
  parser_->add_option(name, value, help)->required()->type_name("");
}

template <typename Value>
void Verb::optional_argument(const std::string& name, Value& value, const std::string& help) {
  parser_->add_option(name, value, help)->type_name("");
}

template <typename Value>
void Verb::option(const std::string& name, const std::string& type, Value& value, const std::string& help) {
  CLI::Option* option = parser_->add_option(name, value, help)->type_name(type);
  if constexpr (std::is_same_v<Value, Words>) option->expected(1)->take_all();
}

void Verb::option_or(const std::string& name, const std::string& type, std::string& value,
                     const std::string& without, const std::string& help) {
  parser_->add_option(name, value, help)->type_name(type)->expected(0, 1)->default_str(without);
}

// CLI11's words about a check are left out of the help.
void Verb::count(const std::string& name, unsigned& value, Range range, const std::string& help) {
  CLI::Range check(range.lowest, range.highest);
  parser_->add_option(name, value, help)->type_name("N")->check(check.description(""));
}

void Verb::choice(const std::string& name, const std::string& type, std::string& value, const Words& choices,
                  const std::string& help) {
  CLI::IsMember check(choices);
  parser_->add_option(name, value, help)->type_name(type)->check(check.description(""));
}

template void Verb::argument(const std::string&, std::string&, const std::string&);
template void Verb::argument(const std::string&, Words&, const std::string&);
template void Verb::optional_argument(const std::string&, std::string&, const std::string&);
template void Verb::optional_argument(const std::string&, Words&, const std::string&);
template void Verb::option(const std::string&, const std::string&, std::string&, const std::string&);
template void Verb::option(const std::string&, const std::string&, Words&, const std::string&);
template void Verb::option(const std::string&, const std::string&, std::uint16_t&, const std::string&);
template void Verb::option(const std::string&, const std::string&, std::uint32_t&, const std::string&);
template void Verb::option(const std::string&, const std::string&, std::uint64_t&, const std::string&);

}  // namespace spark::cli
