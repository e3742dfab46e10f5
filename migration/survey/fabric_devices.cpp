#include "migration/survey/fabric_devices.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/text.hpp"
#include "nvmetcp/names.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"

namespace spark::host {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepestStack = 8;  // of devices made of others

// "nvme1n1" that a link of /dev/disk names; empty: it is none.
std::string linked_device(const fs::path& link) {
  std::error_code error;
  const fs::path target = fs::read_symlink(link, error);
  return error ? std::string() : target.filename().native();
}

std::string filesystem_uuid_of(const SystemRoot& root, const std::string& device) {
  for (const fs::path& entry : list_folder(root / "dev/disk/by-uuid")) {
    if (linked_device(entry) == device) return entry.filename().native();
  }
  return {};
}

void add_path(std::vector<FabricDevice>& devices, const SystemRoot& root, const std::string& device,
              std::uint32_t nsid, const nvmetcp::Controller& controller) {
  const auto at = std::ranges::find(devices, device, &FabricDevice::device);
  if (at != devices.end()) {
    at->paths.push_back(controller);
  } else {
    devices.push_back({device, controller.subsystem, nsid, {controller}, filesystem_uuid_of(root, device)});
  }
}

// As udev writes a label as a name in /dev/disk: "My Data" is "My\\x20Data".
std::string udev_name(const std::string& label) {
  std::string name;
  for (const char c : label) {
    const bool is_kept = std::isalnum(static_cast<unsigned char>(c)) != 0 || (c & 0x80) != 0 ||
                         std::string_view("#+-.:=@_").find(c) != std::string_view::npos;
    char code[8];
    std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned char>(c));
    name += is_kept ? std::string(1, c) : code;
  }
  return name;
}

// "nvme1n1p1" or "dm-3"; empty: there is no such link now.
std::string kernel_name_of(const SystemRoot& root, const std::string& source) {
  constexpr std::array<std::pair<std::string_view, const char*>, 4> kTags = {
      {{"UUID=", "by-uuid"},
       {"LABEL=", "by-label"},
       {"PARTUUID=", "by-partuuid"},
       {"PARTLABEL=", "by-partlabel"}}};
  for (const auto& [tag, folder] : kTags) {
    if (!source.starts_with(tag)) continue;
    std::string value = source.substr(tag.size());
    std::erase(value, '"');
    return linked_device(root / "dev/disk" / folder / udev_name(value));
  }
  if (!source.starts_with("/dev/")) return {};
  const std::string link = linked_device(root / source.substr(1));  // /dev/disk/…, /dev/mapper/…, /dev/VG/LV
  return link.empty() ? source.substr(5) : link;
}

bool is_partition_of(const std::string& name, const std::string& device) {
  const std::string prefix = device + "p";
  return name.size() > prefix.size() && name.starts_with(prefix) &&
         name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
}

// A partition of one of them, or a device that is made of others (LVM, multipath, RAID) with one among them.
const FabricDevice* find_below(const SystemRoot& root, const std::vector<FabricDevice>& devices,
                               const std::string& name, int depth) {
  if (name.empty() || depth == 0) return nullptr;
  const auto own = std::find_if(devices.begin(), devices.end(), [&](const FabricDevice& known) {
    return known.device == name || is_partition_of(name, known.device);
  });
  if (own != devices.end()) return &*own;
  for (const fs::path& entry : list_folder(root / "sys/class/block" / name / "slaves")) {
    const FabricDevice* found = find_below(root, devices, entry.filename().native(), depth - 1);
    if (found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace

std::vector<FabricDevice> list_fabric_devices(const SystemRoot& root) {
  std::vector<FabricDevice> devices;
  const auto controllers = nvmetcp::list_controllers(root);
  if (!controllers) return devices;
  for (const nvmetcp::Controller& controller : *controllers) {
    if (controller.transport != "tcp") continue;
    const fs::path folder = root / "sys/class/nvme" / controller.name;
    for (const fs::path& entry : list_folder(folder)) {
      const auto node = nvmetcp::parse_namespace_name(entry.filename().native());
      const auto nsid = node ? read_line_file(entry / "nsid") : Result<std::string>("");
      if (!node || !nsid || nsid->empty()) continue;
      add_path(devices, root, node->block_device(),
               static_cast<std::uint32_t>(std::strtoul(nsid->c_str(), nullptr, 10)), controller);
    }
  }
  std::ranges::sort(devices, {}, &FabricDevice::device);
  return devices;
}

const FabricDevice* find_device(const SystemRoot& root, const std::vector<FabricDevice>& devices,
                                const std::string& source) {
  const std::string name = kernel_name_of(root, source);
  const auto at = std::ranges::find(devices, name, &FabricDevice::device);
  return at == devices.end() ? nullptr : &*at;
}

bool is_present(const SystemRoot& root, const std::string& source) {
  const std::string name = kernel_name_of(root, source);
  std::error_code error;
  return !name.empty() && fs::exists(root / "sys/class/block" / name, error);
}

const FabricDevice* fabric_below(const SystemRoot& root, const std::vector<FabricDevice>& devices,
                                 const std::string& source) {
  return find_below(root, devices, kernel_name_of(root, source), kDeepestStack);
}

}  // namespace spark::host
