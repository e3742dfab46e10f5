#include "nvmetcp/device_owner.hpp"

#include <sys/sysmacros.h>

#include <filesystem>

namespace spark::nvmetcp {

Result<std::string> subsystem_of_device(const SystemRoot& root, dev_t device) {
  const std::string number = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  std::error_code error;
  const auto node = std::filesystem::canonical(root / ("sys/dev/block/" + number), error);
  if (error) return fail(Errc::NotFound, "block device " + number + " does not exist any more");
  // A disk lies in its subsystem's folder (multipath head) or its controller's; a partition one deeper.
  for (const auto& folder : {node.parent_path(), node.parent_path().parent_path()}) {
    if (auto nqn = read_line_file(folder / "subsysnqn")) return nqn;
  }
  return fail(Errc::Invalid, "block device " + number + " is not NVMe");
}

}  // namespace spark::nvmetcp
