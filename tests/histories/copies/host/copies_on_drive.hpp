// What is really on the cache's drive.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace spark::histories::copies {

std::filesystem::path generation_folder(const std::string& dataset, std::uint64_t generation);
std::vector<std::uint64_t> generations_on_drive(const std::string& dataset);  // ascending
std::uint64_t newest_generation(const std::string& dataset);                  // 0: none
// Where `spark-stage copy` puts the dataset.
std::filesystem::path copied_to(const std::string& dataset);
// All files of copies, in an order that depends on their names only.
std::vector<std::filesystem::path> copied_files();
Bytes used_by_cache();
std::map<ino_t, Bytes> files_of_cache();  // see Drives::files_below
// The cache counts a page for each folder, which takes none on these drives.
Bytes counted_for_folders(const std::filesystem::path& folder);

}  // namespace spark::histories::copies
