#include "daemon/fleet/node_list.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace spark::fleet {
namespace {

constexpr std::size_t kLongestName = 255;  // of a host

bool is_name(std::string_view text) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  };
  return !text.empty() && text.size() <= kLongestName && std::ranges::all_of(text, is_allowed);
}

// The numbers of "1-3" or "07", with their leading zeros. False: not a range, or too many.
bool add_range(std::string_view text, std::vector<std::string>& numbers) {
  const std::size_t dash = text.find('-');
  const std::string_view low = text.substr(0, dash), high = dash == text.npos ? low : text.substr(dash + 1);
  const auto first = parse_number<unsigned>(low), last = parse_number<unsigned>(high);
  if (!first || !last || *last < *first || *last - *first >= kMostNodes) return false;
  for (unsigned i = 0; i <= *last - *first; ++i) {
    std::string digits = std::to_string(*first + i);
    if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
    numbers.push_back(std::move(digits));
  }
  return true;
}

// One item: a name with any number of ranges in brackets.
bool add_item(std::string_view text, std::vector<std::string>& nodes) {
  std::vector<std::string> names{""};
  while (!text.empty()) {
    const std::size_t open = std::min(text.find('['), text.size());
    for (std::string& name : names) name += text.substr(0, open);
    text.remove_prefix(open);
    if (text.empty()) break;
    const std::size_t close = text.find(']');
    if (close == text.npos) return false;
    std::vector<std::string> numbers;
    for (const auto& range : split(text.substr(1, close - 1), ','))
      if (numbers.size() > kMostNodes || !add_range(range, numbers)) return false;
    text.remove_prefix(close + 1);
    if (names.size() * numbers.size() > kMostNodes) return false;
    std::vector<std::string> longer;
    for (const std::string& name : names)
      for (const std::string& number : numbers) longer.push_back(name + number);
    names = std::move(longer);
  }
  if (!std::ranges::all_of(names, is_name) || nodes.size() + names.size() > kMostNodes) return false;
  nodes.insert(nodes.end(), names.begin(), names.end());
  return true;
}

}  // namespace

std::vector<std::string> expand_node_list(std::string_view text) {
  std::vector<std::string> nodes;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ',';
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c != ',' || depth > 0) continue;
    if (!add_item(text.substr(begin, at - begin), nodes)) return {};
    begin = at + 1;
  }
  return depth == 0 ? nodes : std::vector<std::string>{};
}

}  // namespace spark::fleet
