#include "staging/models/sums.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "staging/manifest/raw_path.hpp"
#include "staging/models/model_files.hpp"

namespace spark::staging {
namespace {

// sha256sum escapes such names and puts a backslash before the line.
std::string unescaped(std::string_view name) {
  std::string plain;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char next = name[i] == '\\' && i + 1 < name.size() ? name[++i] : '\0';
    plain += next == 'n' ? '\n' : next == 'r' ? '\r' : next != '\0' ? next : name[i];
  }
  return plain;
}

// "SHA256 (name) = hex"
std::optional<SumLine> parse_bsd(std::string_view line) {
  constexpr std::string_view kLead = "SHA256 (", kMiddle = ") = ";
  const std::size_t middle = line.rfind(kMiddle);
  if (!line.starts_with(kLead) || middle == std::string_view::npos || middle < kLead.size())
    return std::nullopt;
  const std::string_view hex = line.substr(middle + kMiddle.size());
  if (!is_sha256(hex)) return std::nullopt;
  return SumLine{std::string(line.substr(kLead.size(), middle - kLead.size())), lower(hex)};
}

}  // namespace

bool is_sha256(std::string_view text) {
  return text.size() == kSha256Digits &&
         text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

bool is_sums_file(std::string_view path) {
  constexpr std::array<std::string_view, 6> kNames = {"sha256sums",    "sha256sums.txt", "sha256sum",
                                                      "sha256sum.txt", "sha256.txt",     "checksums.sha256"};
  const std::string name = lower(name_of(path));
  return std::ranges::find(kNames, name) != kNames.end() || name.ends_with(".sha256") ||
         name.ends_with(".sha256sum");
}

std::optional<SumLine> parse_sum_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (auto bsd = parse_bsd(line)) return bsd;
  const bool is_escaped = line.starts_with('\\');
  if (is_escaped) line.remove_prefix(1);
  const std::string_view hex = line.substr(0, kSha256Digits);
  if (!is_sha256(hex)) return std::nullopt;
  std::string_view rest = line.substr(kSha256Digits);
  if (trim(rest).empty()) return SumLine{"", lower(hex)};
  // Two characters: a space, then a space for a text file or an asterisk for a binary one. Many scripts write
  // one space.
  if (rest.size() < 2 || rest[0] != ' ') return std::nullopt;
  const bool has_both = rest.size() > 2 && (rest[1] == ' ' || rest[1] == '*');
  rest.remove_prefix(has_both ? 2 : 1);
  return SumLine{is_escaped ? unescaped(rest) : std::string(rest), lower(hex)};
}

std::vector<SumLine> parse_sums(std::string_view text, std::string_view path) {
  std::vector<SumLine> all;
  for (const std::string& line : split(text, '\n')) {
    auto sum = parse_sum_line(line);
    if (!sum) continue;
    if (sum->name.empty()) sum->name = name_of(path).substr(0, name_of(path).rfind('.'));
    while (sum->name.starts_with("./")) sum->name.erase(0, 2);
    all.push_back(std::move(*sum));
  }
  return all;
}

}  // namespace spark::staging
