#include "cli/view/table.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "base/text.hpp"
#include "cli/view/text.hpp"

namespace spark::cli {
namespace {

constexpr unsigned kColumns = 60;

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  for (const std::string& line : split(text, '\n')) longest = std::max(longest, display_width(line));
  return longest;
}

std::string printed(const std::string& name, const std::string& mount) {
  Table table({"NAME", "STATE", "MOUNT"}, {2}, {0});
  table.add({{name}, {"ready"}, {mount}});
  std::ostringstream out;
  table.print(out, Terminal{true, true, kColumns, false, false, 24});
  return out.str();
}

TEST(Table, ShrinksItsLastColumnsOnlyWhenTheOthersCannotShrinkFurther) {
  const std::string name(30, 'n'), mount(60, 'm');
  const std::string wide_mount = printed(name, mount);
  EXPECT_LE(longest_line(wide_mount), kColumns);
  EXPECT_NE(wide_mount.find(name), std::string::npos) << wide_mount;
  const std::string wide_name = printed(std::string(64, 'n'), mount);
  EXPECT_LE(longest_line(wide_name), kColumns) << wide_name;
  EXPECT_EQ(wide_name.find(std::string(64, 'n')), std::string::npos) << wide_name;
}

TEST(Table, IsCompleteIfNoTerminalShowsIt) {
  Table table({"NAME", "MOUNT"}, {1}, {0});
  table.add({{std::string(64, 'n')}, {std::string(64, 'm')}});
  std::ostringstream out;
  table.print(out, Terminal{});
  EXPECT_EQ(longest_line(out.str()), 64u + 2 + 64);
}

}  // namespace
}  // namespace spark::cli
