#include "migration/survey/words.hpp"

#include <algorithm>
#include <cctype>

#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"

namespace spark::host {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

}  // namespace

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
      in_word = true;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      in_word = true;
    } else if (quote == 0 && kSpace.find(c) != std::string_view::npos) {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) words.push_back(std::move(word));
  return words;
}

std::vector<std::string> fstab_columns(std::string_view line) {
  std::vector<std::string> columns;
  for (line = trim(line); !line.empty(); line = trim(line)) {
    const std::size_t end = std::min(line.find_first_of(kSpace), line.size());
    columns.push_back(decode_octal(line.substr(0, end)));
    line.remove_prefix(end);
  }
  return columns;
}

std::string name_for(const std::string& text, std::set<std::string>& taken) {
  const std::string last = text.substr(text.find_last_of(":/") + 1);
  std::string name;
  for (const char c : last) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 && byte < 0x80) {
      name += static_cast<char>(std::tolower(byte));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  constexpr std::size_t kLongest = 48;  // a configuration has names of up to 64 letters
  name.resize(std::min(name.size(), kLongest));
  while (!name.empty() && name.back() == '-') name.pop_back();
  if (name.empty()) name = "volume";
  std::string unique = name;
  for (int i = 2; !taken.insert(unique).second; ++i) unique = name + "-" + std::to_string(i);
  return unique;
}

}  // namespace spark::host
