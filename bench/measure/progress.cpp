#include "base/text.hpp"
#include "bench/measure/bench.hpp"

namespace spark::bench {

std::string progress_line(const Progress& progress) {
  std::string line;
  if (progress.cell > 0) {
    line = "[" + std::to_string(progress.cell) + "/" + std::to_string(progress.cells) + "] ";
  }
  line += progress.path + ": " + progress.doing;
  if (progress.bytes_per_second > 0) line += "  " + format_rate(progress.bytes_per_second);
  const std::string left = "  " + format_duration(progress.left) + " left";
  return cut_short(line, 79 - display_width(left)) + left;
}

}  // namespace spark::bench
