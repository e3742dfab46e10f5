// Begins with a catalog that fits the cache's folder, after its drive was replaced or emptied.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "staging/cache/cache.hpp"

namespace spark::staging {

// The copies of the catalog's own cache.
enum class Copies { Kept, Deleted };

struct Reset {
  std::vector<Evicted> forgotten;  // copies of a cache that is not in the folder; nothing of them was deleted
  std::vector<Evicted> deleted;
  std::string set_aside;  // the file of a catalog that could not be read; empty: none was
};

// Refused, with the numbers, if the folder is the catalog's own cache with copies in it, or has nothing of a
// cache, as without its drive, unless they are to be deleted. The caller knows that nothing is being staged,
// evicted or leased, and recovers the cache afterwards: that finds the copies that are in the folder.
Result<Reset> reset_cache(const CacheConfig& config, const Clock& clock, Copies copies);

}  // namespace spark::staging
