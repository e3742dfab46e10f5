// Copies that only the old folder of a cache has, when that is to be deleted.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "staging/cache/cache_store.hpp"
#include "staging/cache/place/carrier.hpp"

namespace spark::staging {

struct LastCopiesBrought {
  std::vector<Evicted> brought;      // with the bytes of their files
  std::vector<std::string> lacking;  // "imagenet, 1.2 GB: it is damaged": no sound copy is in the cache
};

// Of each dataset whose newest copy in `old` is newer than all in the cache, the newest one that can be read
// becomes a copy of the cache. They are not in the catalog: they were staged after the last call that copied,
// or were damaged then. `work_in` is called before the first byte is written.
Result<LastCopiesBrought> bring_last_copies(CacheStore& store, const CacheFolder& old, Carrier& carrier,
                                            const std::function<Result<>()>& work_in);

}  // namespace spark::staging
