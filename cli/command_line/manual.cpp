#include "cli/command_line/manual.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/text.hpp"
#include "base/version.hpp"
#include "cli/command_line/help.hpp"
#include "cli/command_line/parser_words.hpp"

namespace spark::cli {
namespace {

// For roff: hyphens and quotes that may be copied, a backslash, and no line that begins like a request.
std::string escaped(const std::string& text) {
  constexpr std::array kEscapes = {std::pair{'\\', "\\e"}, std::pair{'-', "\\-"}, std::pair{'\'', "\\(aq"},
                                   std::pair{'`', "\\(ga"}};
  std::string roff;
  for (const char c : text) {
    if (c == '.' && (roff.empty() || roff.back() == '\n')) roff += "\\&";
    const auto* const escape = std::ranges::find(kEscapes, c, &std::pair<char, const char*>::first);
    roff += escape == kEscapes.end() ? std::string(1, c) : escape->second;
  }
  return roff;
}

std::string joined_lines(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string as_sentence(std::string text) {
  text = joined_lines(std::move(text));
  if (text.empty()) return text;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  if (text.back() != '.' && text.back() != '?') text += '.';
  return text;
}

std::string tag_of(const CLI::Option& option) {
  if (option.get_positional()) return "\\fI" + escaped(option.get_name(true)) + "\\fR";
  std::string tag;
  for (const std::string& name : option.get_snames()) tag += "\\fB" + escaped("-" + name) + "\\fR, ";
  for (const std::string& name : option.get_lnames()) tag += "\\fB" + escaped("--" + name) + "\\fR";
  const std::string type = option.get_type_name();
  if (type.empty()) return tag;
  const bool may_lack_value = option.get_items_expected_min() == 0 && option.get_items_expected_max() == 1;
  return tag + (may_lack_value ? "[=\\fI" + escaped(type) + "\\fR]" : " \\fI" + escaped(type) + "\\fR");
}

std::string options_of(const CLI::App& verb) {
  std::string roff;
  for (const CLI::Option* option : verb.get_options()) {
    const bool is_help = option->check_lname("help") && verb.get_parent() != nullptr;
    if (is_help || option->get_group() == Help::kEverywhere || option->get_group().empty()) continue;
    roff += ".TP\n" + tag_of(*option) + "\n" + escaped(as_sentence(option->get_description())) + "\n";
  }
  return roff;
}

// The footer: "Examples:" and its lines, then notes.
std::string footer_of(const CLI::App& verb) {
  const std::string footer = verb.get_footer();
  const std::size_t begin = footer.find('\n') + 1, end = std::min(footer.find("\n\n"), footer.size());
  std::string roff = ".PP\n.RS\n.nf\n" + escaped(footer.substr(begin, end - begin)) + "\n.fi\n.RE\n";
  if (end < footer.size()) roff += ".PP\n" + escaped(joined_lines(footer.substr(end + 2))) + "\n";
  return roff;
}

// "spark-stage volumes up [NAME...]"
std::string synopsis_of(const Help& help, const CLI::App& verb) {
  std::string usage(trim(help.make_usage(&verb, path_of(verb))));
  usage.erase(0, std::string("Usage: ").size());
  const std::string options = " [OPTIONS]";
  return usage.erase(usage.find(options), options.size());
}

std::string sections_of(const Help& help, const CLI::App& parent) {
  std::string roff;
  for (const std::string& name : verb_names(parent)) {
    const CLI::App& verb = *find_verb(parent, name);
    if (verb.get_require_subcommand_min() == 0) {  // the others only group verbs
      roff += ".SS \"" + escaped(synopsis_of(help, verb)) + "\"\n" +
              escaped(as_sentence(verb.get_description())) + "\n" + options_of(verb) + footer_of(verb);
    }
    roff += sections_of(help, verb);
  }
  return roff;
}

void replace(std::string& page, const std::string& mark, const std::string& text) {
  for (std::size_t at = page.find(mark); at != std::string::npos; at = page.find(mark, at + text.size()))
    page.replace(at, mark.size(), text);
}

}  // namespace

std::string fill_manual(const CLI::App& root, std::string page) {
  const auto& help = dynamic_cast<const Help&>(*root.get_formatter());
  replace(page, "@VERSION@", kVersion);
  replace(page, ".\\\" @OPTIONS@\n", options_of(root));
  replace(page, ".\\\" @VERBS@\n", sections_of(help, root));
  return page;
}

}  // namespace spark::cli
