#include "nvmetcp/discovery/autoconnect.hpp"

#include <algorithm>
#include <filesystem>

#include "base/text.hpp"

namespace spark::nvmetcp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRule = "70-nvmf-autoconnect.rules";
constexpr const char* kRuleOfVersion3 = "70-nvmf-registry.rules";
// Of files with one name udev takes the first in this order.
constexpr const char* kFolders[] = {"etc/udev/rules.d", "run/udev/rules.d", "usr/local/lib/udev/rules.d",
                                    "usr/lib/udev/rules.d", "lib/udev/rules.d"};

// Where udev finds it; empty: nowhere, or it is disabled there (an empty file, a link to
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

// nvme-stas lays a file over nvme-cli's, while it runs, that has only Fibre Channel's events.
bool answers_nvme(const std::string& text) {
  const auto lines = split(text, '\n');
  return std::ranges::any_of(lines, [](const std::string& line) {
    return !line.starts_with('#') && line.find("SUBSYSTEM==\"nvme\"") != std::string::npos;
  });
}

}  // namespace

std::string autoconnect_rule(const SystemRoot& root) {
  if (!in_force(root, kRuleOfVersion3).empty()) return {};
  const std::string rule = in_force(root, kRule);
  if (rule.empty()) return {};
  const auto text = read_file(root / rule.substr(1));
  return !text || answers_nvme(*text) ? rule : "";
}

}  // namespace spark::nvmetcp
