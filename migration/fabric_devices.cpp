#include "migration/fabric_devices.hpp"

#include <algorithm>
#include <filesystem>

#include "base/text.hpp"
#include "nvmetcp/names.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"

namespace spark::host {
namespace {

namespace fs = std::filesystem;

// "nvme1n1" that a link of /dev/disk names; empty: it is none.
std::string linked_device(const fs::path& link) {
  std::error_code error;
  const fs::path target = fs::read_symlink(link, error);
  return error ? std::string() : target.filename().native();
}

std::string filesystem_uuid_of(const SystemRoot& root, const std::string& device) {
  std::error_code error;
  fs::directory_iterator entry(root / "dev/disk/by-uuid", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (linked_device(entry->path()) == device) return entry->path().filename().native();
  }
  return {};
}

void add_path(std::vector<FabricDevice>& devices, const SystemRoot& root, const std::string& device,
              std::uint32_t nsid, const nvmetcp::Controller& controller) {
  const auto at =
      std::find_if(devices.begin(), devices.end(), [&](const auto& known) { return known.device == device; });
  if (at != devices.end()) {
    at->paths.push_back(controller);
  } else {
    devices.push_back({device, controller.subsystem, nsid, {controller}, filesystem_uuid_of(root, device)});
  }
}

}  // namespace

std::vector<FabricDevice> list_fabric_devices(const SystemRoot& root) {
  std::vector<FabricDevice> devices;
  const auto controllers = nvmetcp::list_controllers(root);
  if (!controllers) return devices;
  for (const nvmetcp::Controller& controller : *controllers) {
    if (controller.transport != "tcp") continue;
    const fs::path folder = root / "sys/class/nvme" / controller.name;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
      const auto node = nvmetcp::parse_namespace_name(entry->path().filename().native());
      const auto nsid = node ? read_line_file(entry->path() / "nsid") : Result<std::string>("");
      if (!node || !nsid || nsid->empty()) continue;
      add_path(devices, root, node->block_device(),
               static_cast<std::uint32_t>(std::strtoul(nsid->c_str(), nullptr, 10)), controller);
    }
  }
  std::sort(devices.begin(), devices.end(), [](const auto& a, const auto& b) { return a.device < b.device; });
  return devices;
}

const FabricDevice* find_device(const SystemRoot& root, const std::vector<FabricDevice>& devices,
                                const std::string& source) {
  std::string name;
  const auto by = [&](const char* key, const char* folder) {
    if (!source.starts_with(key)) return;
    std::string value = source.substr(std::string_view(key).size());
    std::erase(value, '"');
    name = linked_device(root / folder / value);
  };
  by("UUID=", "dev/disk/by-uuid");
  by("LABEL=", "dev/disk/by-label");
  if (source.starts_with("/dev/disk/")) name = linked_device(root / source.substr(1));
  if (name.empty() && source.starts_with("/dev/")) name = source.substr(5);
  const auto at =
      std::find_if(devices.begin(), devices.end(), [&](const auto& known) { return known.device == name; });
  return at == devices.end() ? nullptr : &*at;
}

}  // namespace spark::host
