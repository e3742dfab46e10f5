// The remains of an interrupted move of a cache, in the new folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file.hpp"
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
Result<Bytes> taken_by(const std::filesystem::path& filling);

// Makes kFilling, and locks it for this process: no recovery deletes it. Unavailable if another process has
// it for longer than `patience`.
Result<UniqueFd> hold_filling(const CacheFolder& to, std::chrono::milliseconds patience);

// Deletes what is in kFilling of other copies than these: their datasets were evicted or staged again.
Result<> delete_others(const CacheFolder& to, const std::set<std::filesystem::path>& fillings);

// Of a cache that is in force: its copies may be in no other place from now on (Mark::was_in_force). kFilling
// is deleted, unless a process fills it, or has begun to since: the call that deletes the old folder.
Result<> settle_in(const std::filesystem::path& cache);

struct WantedCopy {
  std::uint64_t generation = 0;  // 0: whatever an earlier call has copied stays
  bool is_there = false;         // else it is to be copied
};
// Of the datasets of a cache, by the name of their folder.
using Wanted = std::map<std::string, WantedCopy>;

// `all`: the rows of the cache in force, `moved` among them, `there` the datasets whose copy is there. Where
// its copy is damaged, one from before that stays.
Wanted wanted_of(const std::vector<GenerationRow>& all, const std::vector<GenerationRow>& moved,
                 const std::set<std::string>& there);

// A copy in the new folder that is not wanted.
struct UnwantedCopy {
  std::string dataset;  // the name of its folder, if nothing there says more
  Destination place;
  Bytes freed = 0;
  std::string obstacle{};     // "its file a/b is open": it stays; empty: none
  bool is_open = false;       // that is the obstacle
  bool is_replaced = false;   // a later copy of its dataset is wanted
  bool is_left_here = false;  // another one is, which is not looked for again
};

// Those of datasets that are not named too. Deletes nothing. `was_in_force`: one that was staged there may be
// in no other place, unless a later one is wanted.
Result<std::vector<UnwantedCopy>> find_unwanted(const CacheFolder& to, const Wanted& wanted,
                                                bool was_in_force, const StopFlag& stop);

// Those without an obstacle, which is looked for again.
Result<> delete_unwanted(std::vector<UnwantedCopy>& copies, const StopFlag& stop);

// What is left of datasets that are not named, unless one of all the unwanted copies stays.
Result<> delete_unnamed(const CacheFolder& to, const Wanted& wanted, const std::vector<UnwantedCopy>& copies);

}  // namespace spark::staging
