#include "daemon/config/problems.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace spark::config {
void Problems::add(Position at, std::string sentence) {
  problems_.push_back({at, std::move(sentence)});
}

std::string Problems::report(const std::string& file_name) const {
  std::vector<Problem> sorted = problems_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Problem& a, const Problem& b) { return a.at < b.at; });
  const std::size_t shown = std::min(sorted.size(), kMostShown);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < shown; ++i) {
    const Problem& problem = sorted[i];
    lines.push_back(printable(file_name) + ":" + std::to_string(problem.at.line) + ":" +
                    std::to_string(problem.at.column) + ": " + problem.sentence);
  }
  if (sorted.size() > shown) {
    lines.push_back(printable(file_name) + ": and " + std::to_string(sorted.size() - shown) +
                    " more problems");
  }
  return join(lines, "\n");
}

}  // namespace spark::config
