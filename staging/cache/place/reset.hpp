// Begins with a catalog that fits the cache's folder, after its drive was replaced or emptied.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "staging/cache/cache.hpp"

namespace spark::staging {

enum class Wish {
  Nothing,       // only what needs no decision of a person
  Forget,        // the catalog's records of copies that are not in the folder, as their drive is gone
  DeleteCopies,  // of the catalog's own cache, which is in the folder
};

struct Reset {
  std::vector<Evicted> forgotten;  // copies of a cache that is not in the folder; nothing of them was deleted
  std::vector<Evicted> deleted;
  std::string set_aside;  // the file of a catalog that could not be read; empty: none was
};

// Refused, with the copies named, if that would forget records or delete copies and it is not the wish: a
// drive may only be unmounted. The caller knows that nothing is being staged, evicted or leased, and recovers
// the cache afterwards: that finds the copies that are in the folder.
Result<Reset> reset_cache(const CacheConfig& config, const Clock& clock, Wish wish);

}  // namespace spark::staging
