#include "nvmetcp/device/device_io.hpp"

#include <sstream>

namespace spark::nvmetcp {
namespace {

// The first and fifth number of a disk's `stat`: reads and writes that have ended.
std::optional<std::uint64_t> ended_at(const SystemRoot& root, const std::string& disk) {
  const auto line = read_line_file(root / "sys/class/block" / disk / "stat");
  if (!line) return std::nullopt;
  std::istringstream numbers(*line);
  std::uint64_t reads = 0, writes = 0, skipped = 0;
  if (!(numbers >> reads >> skipped >> skipped >> skipped >> writes)) return std::nullopt;
  return reads + writes;
}

}  // namespace

// Of a disk with several paths, "nvme1n1", older kernels count at its paths alone: "nvme1c3n1" is the one
// through nvme3.
std::optional<std::uint64_t> completed_io(const SystemRoot& root, const std::string& disk,
                                          const std::vector<std::string>& controllers) {
  auto all = ended_at(root, disk);
  const auto n = disk.rfind('n');
  if (n == std::string::npos) return all;
  for (const std::string& controller : controllers) {
    if (!controller.starts_with("nvme")) continue;
    const auto path = ended_at(root, disk.substr(0, n) + "c" + controller.substr(4) + disk.substr(n));
    if (path) all = all.value_or(0) + *path;
  }
  return all;
}

}  // namespace spark::nvmetcp
