// What an interrupted move of a cache has left in the new folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "base/units.hpp"
#include "staging/cache/catalog/catalog.hpp"
#include "staging/cache/folder/cache_folder.hpp"

namespace spark::staging {

// In the new folder: copies that are not verified yet.
inline constexpr char kFilling[] = ".moving";

std::filesystem::path filling_of(const CacheFolder& to, const Destination& place);

// On the disk, of this copy, complete or not: a repeated move takes it over.
Bytes taken_by(const std::filesystem::path& filling);

// Deletes what is in kFilling of other copies than these: their datasets were evicted or staged again.
Result<> delete_others(const CacheFolder& to, const std::set<std::filesystem::path>& fillings);

// Of the datasets of a cache, by the name of their folder: the generation that is there already, 0 for one
// that is to be copied; none: whatever an earlier call has copied stays.
using Wanted = std::map<std::string, std::optional<std::uint64_t>>;

// `all`: the rows of the cache in force, `moved` among them, `there` the datasets whose copy is there. Where
// its copy is damaged, one from before that stays.
Wanted wanted_of(const std::vector<GenerationRow>& all, const std::vector<GenerationRow>& moved,
                 const std::set<std::string>& there);

// A copy that an earlier call has made, and that is not wanted.
struct UnwantedCopy {
  std::string dataset;  // the name of its folder, if nothing there says more
  Destination place;
  Bytes freed = 0;
  std::string obstacle;  // "its file a/b is open": it stays; empty: none
};

// Those of datasets that are not named too. Deletes nothing.
Result<std::vector<UnwantedCopy>> find_unwanted(const CacheFolder& to, const Wanted& wanted,
                                                const StopFlag& stop);

// Those without an obstacle, which is looked for again, and what is left of datasets that are not named.
Result<> delete_unwanted(const CacheFolder& to, const Wanted& wanted, std::vector<UnwantedCopy>& copies,
                         const StopFlag& stop);

}  // namespace spark::staging
