// The files of a set in walk order, as one process of this host leaves them to another: a line for each with
// its size and its encoded path, after a line with their number.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "staging/manifest/lines.hpp"
#include "staging/manifest/raw_path.hpp"

namespace spark::fleet {

struct ListedFile {
  staging::RawPath path;
  Bytes size = 0;
};

std::string list_header(std::uint64_t files);
std::string list_line(std::string_view path, Bytes size);

// Invalid: cut short, or a line that none of the above wrote.
Result<std::vector<ListedFile>> read_list(staging::LineReader& lines);

}  // namespace spark::fleet
