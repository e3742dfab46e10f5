// What is really on the cache's drive.
#pragma once

#include <cstdint>
#include <filesystem>
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

}  // namespace spark::histories::copies
