// Everything that takes space in a cache, and its purpose.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "staging/cache/cache.hpp"
#include "staging/cache/cache_store.hpp"
#include "staging/cache/eviction.hpp"
#include "staging/files/deletion.hpp"

namespace spark::staging {

// a - b, but at least 0.
inline std::uint64_t over(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : 0;
}

// One dataset's share.
struct Share {
  std::string dataset;  // the folder's name if the dataset's is unknown
  std::vector<GenerationRow> rows;
  Footprint published;    // of the rows
  Footprint partial;      // of a copy in progress or an abandoned one, on the disk
  Footprint reserved;     // total reservation of a copy in progress; empty means that none is in progress
  std::string needed_by;  // why it is not evicted; empty means that nothing needs it
  bool is_prefetched = false;  // has a soft lease
  // The need ends within minutes: one of its files is open, or another process works on it.
  bool need_passes = false;
  std::optional<Bytes> freed;  // by deleting the rows, once determined

  bool in_progress() const { return reserved.inodes > 0; }
  // Counts the whole reservation, written or not.
  Footprint taken() const;
};

// Keyed by folder name.
using Inventory = std::map<std::string, Share>;

// Whether prefetched copies may be evicted for this request. A prefetch never evicts a prefetched copy.
enum class Prefetched { MakesWay, Stays };

// How copies in progress are counted: file by file; or, for a display, as counted last within a minute. An
// abandoned one is counted again if something was added since. A partial copy may have millions of files.
enum class Counted { Now, Lately };

// What evicting each of the dataset's generations frees: a file that several of them share counts for the
// newest. The caller has its lock.
Result<std::map<std::uint64_t, Bytes>> count_each(CacheFolder& folder, const std::string& dataset,
                                                  const std::set<std::uint64_t>& generations);
// Of those that are ready, for the catalog.
Result<> recount(CacheStore& store, const std::string& dataset);

// Those with another content in their folder. A catalog that was lost begins its numbers again: a folder in
// another place, as `cache move` leaves it, may be an earlier catalog's. Reads the manifests.
std::vector<GenerationRow> rows_of_others(const CacheFolder& folder, std::vector<GenerationRow> rows);

// Names the catalog and the folder of copies, which are compared once: no copy gets another content later.
std::string pair_of(const CacheConfig& config);

Result<Inventory> take_inventory(CacheStore& store, const std::vector<InUse>& in_use, Prefetched prefetched,
                                 Counted partials = Counted::Now);

// What deleting these generations would free, and what prevents it. A generation that is gone is none.
Result<Deletion> look_before_deleting(CacheStore& store, const std::vector<GenerationRow>& rows,
                                      const StopFlag& stop);

// Determines how much deleting its rows frees, or the obstacle to deleting them.
Result<> look_before_evicting(CacheStore& store, Share& share, const StopFlag& stop);

// For a copy in progress that is a prefetch and may be ended: its whole reservation is freed, written or not.
Candidate candidate_for(const Share& share, WallTime now);

// "imagenet 1.2 TB (leased by pid 12), models 300 GB (being staged)": the datasets that are not evicted,
// largest first.
std::string holders_in_words(const Inventory& inventory);

// Usage by staged copies and copies in progress, and the space left.
Result<Usage> usage_of(CacheStore& store, const CacheConfig& config);

}  // namespace spark::staging
