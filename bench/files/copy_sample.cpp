#include "bench/files/copy_sample.hpp"

#include <filesystem>

namespace spark::bench {

std::vector<std::string> CopySample::of_round(unsigned round, Bytes at_most) const {
  std::vector<std::string> chosen;
  std::size_t next = 0;
  for (unsigned earlier = 0; earlier <= round && !folders.empty(); ++earlier) {
    chosen.clear();
    Bytes bytes = 0;
    do {
      const std::filesystem::path path = folders[next].path;
      if (path == source) return {};
      chosen.push_back(path.lexically_relative(source).native());
      bytes += folders[next].bytes;
      next = (next + 1) % folders.size();
    } while (chosen.size() < folders.size() && bytes + folders[next].bytes <= at_most);
  }
  return chosen;
}

}  // namespace spark::bench
