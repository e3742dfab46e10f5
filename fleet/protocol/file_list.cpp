#include "fleet/protocol/file_list.hpp"

#include <charconv>

#include "staging/manifest/names.hpp"

namespace spark::fleet {
namespace {

constexpr std::string_view kHeader = "spark-stage file list 1 ";

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Opened beneath a folder without ever leaving it, so what matters is that it is one path.
std::optional<ListedFile> parse_list_line(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto size = number_in(line.substr(0, space));
  const auto path = staging::decode_name(line.substr(space + 1));
  if (!size || !path || path->starts_with('/') || path->find('\0') != std::string::npos) return std::nullopt;
  return ListedFile{*path, *size};
}

}  // namespace

std::string list_header(std::uint64_t files) {
  return std::string(kHeader) + std::to_string(files) + "\n";
}

std::string list_line(std::string_view path, Bytes size) {
  return std::to_string(size) + " " + staging::encode_name(path) + "\n";
}

Result<std::vector<ListedFile>> read_list(staging::LineReader& lines) {
  const auto broken = [] {
    return fail(Errc::Invalid, "the list of the set's files is cut short or spoiled");
  };
  const auto header = lines.next();
  if (!header || !header->starts_with(kHeader)) return broken();
  const auto files = number_in(header->substr(kHeader.size()));
  if (!files) return broken();
  std::vector<ListedFile> list;
  while (const auto line = lines.next()) {
    auto file = parse_list_line(*line);
    if (!file) return broken();
    list.push_back(std::move(*file));
  }
  if (auto read = lines.error(); !read) return read.take_error();
  if (list.size() != *files) return broken();
  return list;
}

}  // namespace spark::fleet
