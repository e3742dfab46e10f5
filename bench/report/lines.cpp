#include <algorithm>

#include "base/text.hpp"
#include "bench/report/report.hpp"

namespace spark::bench {
namespace {

constexpr std::size_t kWidth = 80;

}  // namespace

std::string wrapped(const std::string& text, std::size_t indent) {
  std::string out, line;
  for (const std::string& whole : split(text, ' ')) {
    const std::string word = cut_short(whole, kWidth - indent);
    if (!line.empty() && display_width(line) + 1 + display_width(word) > kWidth) {
      out += line + "\n";
      line = std::string(indent, ' ') + word;
    } else {
      line += (line.empty() ? "" : " ") + word;
    }
  }
  return out + line + "\n";
}

std::string in_columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i] + std::string(widths[i] - display_width(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace spark::bench
