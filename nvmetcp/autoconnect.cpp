#include "nvmetcp/autoconnect.hpp"

#include <filesystem>

namespace spark::nvmetcp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRule = "70-nvmf-autoconnect.rules";
constexpr const char* kRuleOfVersion3 = "70-nvmf-registry.rules";
// Of files with one name udev takes the first in this order.
constexpr const char* kFolders[] = {"etc/udev/rules.d", "run/udev/rules.d", "usr/local/lib/udev/rules.d",
                                    "usr/lib/udev/rules.d", "lib/udev/rules.d"};

// Where udev finds it; empty: nowhere, or somebody switched it off there (an empty file, a link to
// /dev/null).
std::string in_force(const SystemRoot& root, const char* rule) {
  for (const char* folder : kFolders) {
    const fs::path file = root / folder / rule;
    std::error_code error;
    if (!fs::exists(fs::symlink_status(file, error))) continue;
    const bool says_something = fs::is_regular_file(file, error) && fs::file_size(file, error) > 0;
    return says_something ? "/" + (fs::path(folder) / rule).native() : "";
  }
  return {};
}

}  // namespace

std::string autoconnect_rule(const SystemRoot& root) {
  return in_force(root, kRuleOfVersion3).empty() ? in_force(root, kRule) : "";
}

}  // namespace spark::nvmetcp
