// A second path of a copy that is one file, as of a checkpoint: a generation's own path ends with its number,
// and frameworks such as Ultralytics and Keras go by the ending of a name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "staging/cache/folder/cache_folder.hpp"

namespace spark::staging {

// CACHE/.named/KEY/GENERATION/NAME, with the file's name in VOLUME:PATH. Empty for a dataset with another
// name: it says nothing of a file.
std::filesystem::path named_file(const CacheFolder& folder, const std::string& dataset,
                                 std::uint64_t generation);

// Makes it, if the copy is one file. Without it the copy is served all the same.
void name_file(const CacheFolder& folder, const std::string& dataset, std::uint64_t generation);

// Removes it, before the copy is removed.
void remove_name(const CacheFolder& folder, const std::string& dataset, std::uint64_t generation);

}  // namespace spark::staging
