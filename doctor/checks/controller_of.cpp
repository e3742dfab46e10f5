#include "doctor/checks/controller_of.hpp"

#include <filesystem>

#include "base/file.hpp"
#include "nvmetcp/names.hpp"

namespace spark::doctor {
namespace {

namespace fs = std::filesystem;

// A partition's folder lies in its disk's, which lies in its controller's.
std::string controller_in(const fs::path& folder) {
  for (const fs::path& part : folder) {
    if (nvmetcp::is_controller_name(part.native())) return part.native();
  }
  return {};
}

}  // namespace

std::string controller_of(const std::string& sysfs, const std::string& device) {
  std::error_code error;
  fs::path folder = fs::canonical(fs::path(sysfs) / "dev/block" / device, error);
  if (error) return {};
  std::string name = controller_in(folder);
  for (const fs::path& below : list_folder(folder / "slaves")) {
    if (name.empty()) name = controller_in(fs::canonical(below, error));
  }
  return name;
}

}  // namespace spark::doctor
