// Which block device is which namespace of which target, now. From sysfs and /dev/disk: never blocks.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "nvmetcp/types.hpp"

namespace spark::host {

struct FabricDevice {
  std::string device;  // "nvme1n1"
  std::string subsystem;
  std::uint32_t nsid = 0;
  std::vector<nvmetcp::Controller> paths;  // over TCP
  std::string filesystem_uuid;             // as udev found it on the whole device; empty: none
};

std::vector<FabricDevice> list_fabric_devices(const SystemRoot& root);

// The one that a source of fstab or mountinfo means, as a whole: "/dev/nvme1n1", "UUID=…", "/dev/disk/…".
const FabricDevice* find_device(const SystemRoot& root, const std::vector<FabricDevice>& devices,
                                const std::string& source);

// A block device of this host has that name now.
bool is_present(const SystemRoot& root, const std::string& source);

// The first that the source is, is a partition of, or is made of (LVM, multipath, RAID); null: none.
const FabricDevice* fabric_below(const SystemRoot& root, const std::vector<FabricDevice>& devices,
                                 const std::string& source);

}  // namespace spark::host
