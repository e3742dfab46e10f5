// Copies that only the old folder of a cache has, when that is to be deleted.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "staging/cache/cache_store.hpp"
#include "staging/cache/place/carrier.hpp"

namespace spark::staging {

struct LackingCopy {
  Evicted copy;     // with the bytes of its files
  std::string why;  // "it is damaged"
};
struct LastCopiesBrought {
  std::vector<Evicted> brought;      // the same
  std::vector<LackingCopy> lacking;  // no sound copy is in the cache
};

// Of each dataset whose newest copy in `old` is newer than all in the cache, the newest one that can be read
// becomes a copy of the cache. They are not in the catalog: they were staged after the last call that copied,
// or were damaged then. `work_in` is called before the first byte is written. Unavailable if a dataset is at
// work in the cache for longer than `patience`.
Result<LastCopiesBrought> bring_last_copies(CacheStore& store, const CacheFolder& old, Carrier& carrier,
                                            const std::function<Result<>()>& work_in,
                                            std::chrono::milliseconds patience);

}  // namespace spark::staging
