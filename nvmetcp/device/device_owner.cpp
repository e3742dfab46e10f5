#include "nvmetcp/device/device_owner.hpp"

#include <filesystem>

#include "base/file_system.hpp"
#include "base/text.hpp"

namespace spark::nvmetcp {

Result<DeviceOwner> owner_of_device(const SystemRoot& root, dev_t device) {
  const std::string number = device_text(device);
  // A link into the device's own folder. A disk lies in its subsystem's folder (multipath head) or its
  // controller's; a partition one deeper.
  const auto node = root / ("sys/dev/block/" + number);
  for (const std::filesystem::path& disk : {node, node / ".."}) {
    const auto nqn = read_line_file(disk / "../subsysnqn");
    if (!nqn && nqn.error().kind == Errc::NotFound) continue;
    if (!nqn) return nqn.take_error();
    const auto nsid = parse_number<std::uint32_t>(read_line_file(disk / "nsid").value_or(""));
    return DeviceOwner{*nqn, nsid.value_or(0), disk != node};
  }
  std::error_code ignored;
  if (std::filesystem::status(node, ignored).type() == std::filesystem::file_type::not_found)
    return fail(Errc::NotFound, "block device " + number + " does not exist any more");
  return fail(Errc::Invalid, "block device " + number + " is not NVMe");
}

}  // namespace spark::nvmetcp
