#include "base/text.hpp"
#include "cli/view/screens.hpp"
#include "cli/view/table.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

constexpr std::size_t kIndent = 7;  // under the first word of the finding

std::string of(const json::object& object, std::string_view key) {
  return get_text(object, key);
}

void print_finding(std::ostream& out, const Terminal& terminal, std::size_t width,
                   const json::object& finding) {
  const bool is_wrong = of(finding, "level") == "wrong";
  out << coloured(is_wrong ? "WRONG  " : "note   ", is_wrong ? Colour::Red : Colour::Yellow, terminal.colour)
      << wrapped(of(finding, "what"), width, kIndent).substr(kIndent)
      << wrapped(of(finding, "why"), width, kIndent) << wrapped("Fix: " + of(finding, "fix"), width, kIndent);
}

// "fine   kernel 6.17, libnvme, clock", and sentences, "target rose: …", on a line each.
void print_words(std::ostream& out, std::size_t width, const std::string& title,
                 const std::vector<std::string>& words) {
  std::vector<std::string> all, lines;
  for (const std::string& word : words) (word.find(": ") != word.npos ? lines : all).push_back(word);
  if (!all.empty()) lines.insert(lines.begin(), join(all, ", "));
  std::string indent = lines.empty() ? "" : title + std::string(kIndent - title.size(), ' ');
  for (const std::string& line : lines) {
    out << indent << wrapped(line, width, kIndent).substr(kIndent);
    indent = std::string(kIndent, ' ');
  }
}

}  // namespace

void print_findings(std::ostream& out, const Terminal& terminal, const json::object& report) {
  const std::size_t width = terminal.out ? terminal.columns : 80;
  const auto wrong = get_int(report, "wrong").value_or(0), notes = get_int(report, "notes").value_or(0);
  const auto findings = objects_in(report, "findings");
  for (const json::object& finding : findings) print_finding(out, terminal, width, finding);
  if (!findings.empty()) out << "\n";
  print_words(out, width, "fine", get_strings(report, "fine"));
  print_words(out, width, "not", get_strings(report, "unknown"));
  if (wrong == 0 && notes == 0) {
    out << "Nothing is wrong.\n";
  } else {
    out << (wrong == 0 ? "Nothing is" : std::to_string(wrong) + (wrong == 1 ? " thing is" : " things are"))
        << " wrong" << (notes == 0 ? "" : ", " + counted(static_cast<std::uint64_t>(notes), "note")) << ".\n";
  }
}

}  // namespace spark::cli
