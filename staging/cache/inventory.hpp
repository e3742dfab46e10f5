// All that takes space in a cache, and what for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "staging/cache/cache.hpp"
#include "staging/cache/cache_store.hpp"
#include "staging/cache/eviction.hpp"

namespace spark::staging {

// What `a` is more than `b`.
inline std::uint64_t over(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : 0;
}

// One dataset's share.
struct Share {
  std::string dataset;  // the folder's name where only that is known
  std::vector<GenerationRow> rows;
  Footprint published;         // of the rows
  Footprint partial;           // of a copy that is being made or was given up, on the disk
  Footprint reserved;          // what a copy in progress was promised in all; nothing: none is in progress
  std::string needed_by;       // why it is not evicted; empty: nobody needs it
  bool is_prefetched = false;  // leased softly
  bool need_passes = false;    // within minutes: a file of it is open, or another process is at it
  std::optional<Bytes> freed;  // that deleting the rows gives back, once that was found out

  bool in_progress() const { return reserved.inodes > 0; }
  // Promised counts, written or not.
  Footprint taken() const;
};

// By the folder's name.
using Inventory = std::map<std::string, Share>;

// What prefetched copies do for whoever needs room: one prefetch never evicts what another has brought.
enum class Prefetched { MakesWay, Stays };

Result<Inventory> take_inventory(CacheStore& store, const std::vector<InUse>& in_use, Prefetched prefetched);

// Finds out what deleting its rows gives back, or what stands in the way of that.
Result<> look_before_evicting(CacheStore& store, Share& share, const StopFlag& stop);

// Of a copy in progress, a prefetch that may be ended: what it was promised comes back, written or not.
Candidate candidate_for(const Share& share, WallTime now);

// "imagenet 1.2 TB (leased by pid 12), models 300 GB (being staged)": what is not evicted, largest first.
std::string holders_in_words(const Inventory& inventory);

// What is staged and being copied, and what may still come.
Result<Usage> usage_of(CacheStore& store, const CacheConfig& config);

}  // namespace spark::staging
