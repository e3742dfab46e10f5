#include "tests/histories/copies/host/copies_on_drive.hpp"

#include <algorithm>
#include <cstdlib>

#include "staging/manifest/names.hpp"
#include "tests/histories/copies/host/drives.hpp"
#include "tests/histories/copies/host/places.hpp"

namespace spark::histories::copies {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const std::string& dataset) {
  return fs::path(places::kDrive) / "data" / staging::folder_name(dataset);
}

}  // namespace

fs::path generation_folder(const std::string& dataset, std::uint64_t generation) {
  return folder_of(dataset) / std::to_string(generation);
}

std::vector<std::uint64_t> generations_on_drive(const std::string& dataset) {
  std::vector<std::uint64_t> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_of(dataset), error)) {
    const std::uint64_t number = std::strtoull(entry.path().filename().c_str(), nullptr, 10);
    if (number != 0) found.push_back(number);
  }
  std::ranges::sort(found);
  return found;
}

std::uint64_t newest_generation(const std::string& dataset) {
  const auto all = generations_on_drive(dataset);
  return all.empty() ? 0 : all.back();
}

fs::path copied_to(const std::string& dataset) {
  return fs::path(places::kDrive) / "home" / dataset;
}

std::vector<fs::path> copied_files() {
  std::vector<fs::path> files;
  for (const char* folder : {"data", "home"}) {
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(places::kDrive) / folder, error)) {
      const bool is_ours = entry.path().filename().native().starts_with(".");  // a manifest
      if (!is_ours && entry.is_regular_file(error) && !entry.is_symlink(error)) files.push_back(entry.path());
    }
  }
  std::erase_if(files, [](const fs::path& file) { return file.native().find("/.") != std::string::npos; });
  std::ranges::sort(files);
  return files;
}

std::map<ino_t, Bytes> files_of_cache() {
  const fs::path drive = places::kDrive;
  return Drives::files_below({drive / "data", drive / ".partial", drive / ".trash"});
}

Bytes used_by_cache() {
  return Drives::sum_of(files_of_cache());
}

Bytes counted_for_folders(const fs::path& folder) {
  constexpr Bytes kPage = 4 * kKiB;
  Bytes sum = kPage;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.is_directory(error) && !entry.is_symlink(error)) sum += kPage;
  }
  return sum;
}

}  // namespace spark::histories::copies
