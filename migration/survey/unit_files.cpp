#include "migration/survey/unit_files.hpp"

#include <algorithm>
#include <filesystem>

#include "base/text.hpp"

namespace spark::host {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostUnits = 4096, kUnitBytes = 256 << 10;

// Lines that end in a backslash go on in the next one.
std::vector<std::string> logical_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::string whole;
  for (const std::string& line : split(text, '\n')) {
    const std::string_view part = trim(line);
    if (part.starts_with('#') || part.starts_with(';')) continue;
    const bool goes_on = part.ends_with('\\');
    whole += std::string(goes_on ? part.substr(0, part.size() - 1) : part) + (goes_on ? " " : "");
    if (goes_on) continue;
    lines.push_back(std::move(whole));
    whole.clear();
  }
  if (!whole.empty()) lines.push_back(std::move(whole));
  return lines;
}

// Another name of a unit in the same folder goes with that unit.
bool is_alias(const fs::path& link) {
  std::error_code error;
  const fs::path target = fs::read_symlink(link, error);
  return !error && (link.parent_path() / target).lexically_normal().parent_path() == link.parent_path();
}

// Folders with links to the units that systemd starts with another one.
std::vector<std::string> wanting_folders(const SystemRoot& root) {
  const std::string base = "etc/systemd/system";
  std::vector<std::string> folders;
  for (const fs::path& entry : list_folder(root / base)) {
    const std::string name = entry.filename().native();
    if (name.ends_with(".wants") || name.ends_with(".requires")) folders.push_back("/" + base + "/" + name);
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::vector<std::string> links_to(const SystemRoot& root, const std::vector<std::string>& folders,
                                  const std::string& unit) {
  std::vector<std::string> links;
  for (const std::string& folder : folders) {
    std::error_code ignored;
    const std::string link = folder + "/" + unit;
    if (fs::is_symlink(root / link.substr(1), ignored)) links.push_back(link);
  }
  return links;
}

}  // namespace

std::vector<std::pair<UnitFile, std::string>> read_unit_files(const LocalFiles& files,
                                                              std::string_view ending) {
  std::vector<std::pair<UnitFile, std::string>> units;
  const SystemRoot& root = files.root();
  const auto folders = wanting_folders(root);
  for (const char* folder : {"etc/systemd/system", "usr/local/lib/systemd/system"}) {
    std::size_t seen = 0;
    for (const fs::path& entry : list_folder(root / folder)) {
      const std::string name = entry.filename().native();
      if (!name.ends_with(ending) || ++seen > kMostUnits) continue;
      std::error_code ignored;
      const bool is_link = fs::is_symlink(entry, ignored);
      if (is_link && is_alias(entry)) continue;
      auto text = files.read("/" + std::string(folder) + "/" + name, kUnitBytes);
      if (!text) continue;
      units.push_back({{name, "/" + std::string(folder) + "/" + name, is_link, links_to(root, folders, name)},
                       std::move(*text)});
    }
  }
  std::sort(units.begin(), units.end(),
            [](const auto& a, const auto& b) { return a.first.file < b.first.file; });
  return units;
}

std::vector<std::pair<std::string, std::string>> unit_settings(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const std::string& line : logical_lines(text)) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string_view whole = line;
    settings.emplace_back(trim(whole.substr(0, equals)), trim(whole.substr(equals + 1)));
  }
  return settings;
}

}  // namespace spark::host
