#include <algorithm>

#include "base/text.hpp"
#include "bench/report/report.hpp"

namespace spark::bench {
namespace {

constexpr std::size_t kWidth = 80;

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string cut(const std::string& text, std::size_t width) {
  if (columns_of(text) <= width) return text;
  std::string kept;
  std::size_t columns = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80 && ++columns >= width) break;
    kept += c;
  }
  return kept + "…";
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t indent) {
  std::string out, line;
  for (const std::string& whole : split(text, ' ')) {
    const std::string word = cut(whole, kWidth - indent);
    if (!line.empty() && columns_of(line) + 1 + columns_of(word) > kWidth) {
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
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i] + std::string(widths[i] - columns_of(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace spark::bench
