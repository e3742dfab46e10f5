// Files of SHA-256 digests, as sha256sum(1) writes and reads them, BSD's too.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spark::staging {

// A line of a sums file: no value for other lines, such as comments or signatures.
struct SumLine {
  std::string name;  // empty in a NAME.sha256 without a name
  std::string sha256;
};
std::optional<SumLine> parse_sum_line(std::string_view line);
// Those of the sums file at `path`. The names are paths from its folder, without "./".
std::vector<SumLine> parse_sums(std::string_view text, std::string_view path);

bool is_sums_file(std::string_view path);

bool is_sha256(std::string_view text);  // 64 digits, of either case

}  // namespace spark::staging
