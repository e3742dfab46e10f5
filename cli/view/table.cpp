#include "cli/view/table.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

constexpr std::size_t kGap = 2, kNoteIndent = 4, kPlainWidth = 80, kNarrowest = 12;

const char* escape_of(Colour colour) {
  static constexpr const char* kEscapes[] = {"", "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[2m"};
  return kEscapes[static_cast<std::size_t>(colour)];
}

// Returns the part of `excess` that is left when all of the columns are at their narrowest.
std::size_t shrink(std::vector<std::size_t>& widths, const std::vector<std::size_t>& columns,
                   std::size_t excess) {
  for (; excess > 0 && !columns.empty(); --excess) {
    const std::size_t widest =
        *std::ranges::max_element(columns, {}, [&](std::size_t column) { return widths[column]; });
    if (widths[widest] <= kNarrowest) break;
    --widths[widest];
  }
  return excess;
}

}  // namespace

std::string cell_of(const json::object& object, std::string_view key) {
  const std::string text = get_shown(object, key);
  return text.empty() ? "-" : text;
}

std::string coloured(const std::string& text, Colour colour, bool wanted) {
  return wanted && colour != Colour::None ? escape_of(colour) + text + "\x1b[0m" : text;
}

Table::Table(std::vector<std::string> header, std::vector<std::size_t> shrinkable,
             std::vector<std::size_t> shrinkable_last)
    : header_(std::move(header)),
      shrinkable_(std::move(shrinkable)),
      shrinkable_last_(std::move(shrinkable_last)) {}

void Table::add(std::vector<Cell> row) {
  rows_.push_back({std::move(row), {}});
}

void Table::add_note(std::string text) {
  rows_.back().notes.push_back(std::move(text));
}

std::vector<std::size_t> Table::widths(const Terminal& terminal) const {
  std::vector<std::size_t> widths;
  for (const std::string& title : header_) widths.push_back(display_width(title));
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row.cells[i].text));
    }
  }
  std::size_t all = kGap * (widths.size() - 1);
  for (const std::size_t width : widths) all += width;
  std::size_t excess = terminal.out && all > terminal.columns ? all - terminal.columns : 0;
  for (const auto* group : {&shrinkable_, &shrinkable_last_}) excess = shrink(widths, *group, excess);
  return widths;
}

void Table::print(std::ostream& out, const Terminal& terminal) const {
  const std::vector<std::size_t> columns = widths(terminal);
  const auto print_row = [&](const std::vector<Cell>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string text = shorten(cells[i].text, columns[i]);
      out << coloured(text, cells[i].colour, terminal.colour);
      if (i + 1 < cells.size()) out << std::string(columns[i] - display_width(text) + kGap, ' ');
    }
    out << "\n";
  };
  std::vector<Cell> titles;
  for (const std::string& title : header_) titles.push_back({title, Colour::Faint});
  print_row(titles);
  const std::size_t width = terminal.out ? terminal.columns : kPlainWidth;
  for (const Row& row : rows_) {
    print_row(row.cells);
    for (const std::string& note : row.notes) out << wrapped(note, width, kNoteIndent);
  }
}

}  // namespace spark::cli
