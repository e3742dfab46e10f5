// What an interrupted move of a cache has left in the new folder.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "base/units.hpp"
#include "staging/cache/folder/cache_folder.hpp"

namespace spark::staging {

// In the new folder: copies that are not verified yet.
inline constexpr char kFilling[] = ".moving";

std::filesystem::path filling_of(const CacheFolder& to, const Destination& place);

// On the disk, of this copy, complete or not: a repeated move takes it over.
Bytes taken_by(const std::filesystem::path& filling);

// Deletes what is in kFilling of other copies than these: their datasets were evicted or staged again.
Result<> delete_others(const CacheFolder& to, const std::set<std::filesystem::path>& fillings);

// Deletes the generations of the dataset before this one that an earlier call has copied, unless a program
// has a file of them open.
Result<> delete_earlier(const CacheFolder& to, const std::string& dataset, std::uint64_t generation,
                        const StopFlag& stop);

}  // namespace spark::staging
