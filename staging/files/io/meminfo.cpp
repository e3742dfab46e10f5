#include "staging/files/io/meminfo.hpp"

#include <string>

#include "base/text.hpp"

namespace spark::staging {

Bytes read_meminfo(const SystemRoot& root, std::string_view name) {
  const auto text = read_file(root / "proc/meminfo");
  const std::string lines = "\n" + text.value_or(""), line = "\n" + std::string(name) + ":";
  const std::size_t at = lines.find(line);
  if (at == std::string::npos) return 0;
  const std::string_view number = trim(std::string_view(lines).substr(at + line.size(), 20));
  return leading_number<Bytes>(number).value_or(0) * kKiB;
}

}  // namespace spark::staging
