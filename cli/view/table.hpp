// A table of text for people: columns as wide as they have to be, colours only where they are wanted.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "cli/view/terminal.hpp"

namespace spark::cli {

enum class Colour { None, Green, Yellow, Red, Faint };

struct Cell {
  std::string text;
  Colour colour = Colour::None;
};

class Table {
 public:
  // `shrinkable`: the columns that give way, the widest first, when the table is wider than the terminal;
  // `shrinkable_last`: those that give way after them.
  Table(std::vector<std::string> header, std::vector<std::size_t> shrinkable,
        std::vector<std::size_t> shrinkable_last = {});
  void add(std::vector<Cell> row);
  // A line of its own under the last row.
  void add_note(std::string text);
  void print(std::ostream& out, const Terminal& terminal) const;

 private:
  struct Row {
    std::vector<Cell> cells;
    std::vector<std::string> notes;
  };
  std::vector<std::size_t> widths(const Terminal& terminal) const;

  std::vector<std::string> header_;
  std::vector<std::size_t> shrinkable_, shrinkable_last_;
  std::vector<Row> rows_;
};

// The text of a key as a cell shows it; "-" where there is none.
std::string cell_of(const json::object& object, std::string_view key);

std::string coloured(const std::string& text, Colour colour, bool wanted);

}  // namespace spark::cli
