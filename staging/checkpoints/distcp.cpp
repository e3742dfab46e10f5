#include "staging/checkpoints/distcp.hpp"

namespace spark::staging {
namespace {

// The beginning of the digits that end at `end`; `end` if there are none.
std::size_t begin_of_number(std::string_view text, std::size_t end) {
  while (end > 0 && text[end - 1] >= '0' && text[end - 1] <= '9') --end;
  return end;
}

}  // namespace

std::set<std::string> data_files_in(std::string_view metadata) {
  constexpr std::string_view kEnd = ".distcp";
  std::set<std::string> names;
  for (std::size_t end = metadata.find(kEnd); end != std::string_view::npos;
       end = metadata.find(kEnd, end + 1)) {
    const std::size_t number = begin_of_number(metadata, end);
    if (number == end || number == 0 || metadata[number - 1] != '_') continue;
    const std::size_t rank = begin_of_number(metadata, number - 1);
    if (rank == number - 1 || rank < 2 || metadata.substr(rank - 2, 2) != "__") continue;
    names.emplace(metadata.substr(rank - 2, end + kEnd.size() - (rank - 2)));
  }
  return names;
}

}  // namespace spark::staging
