// Room in the cache for one more copy: promised before its first byte, made by evicting others.
#pragma once

#include <string>
#include <vector>

#include "staging/cache.hpp"
#include "staging/cache_store.hpp"
#include "staging/space.hpp"

namespace spark::staging {

struct RoomRequest {
  std::string dataset;  // the caller has its lock
  Footprint whole;      // of all of the copy
  Footprint shared;     // of it, what an older copy has already
  Need need;            // of it, what is still to be written
  Bytes keep_free = 0;
  ProcessId answers_for;      // the reservation is void when it ends
  std::vector<InUse> in_use;  // never evicted
};

// Reserves the room, after evicting what has to go for it (see eviction.hpp). One process at a time: two
// copies never count on the same free bytes. NoSpace, with the numbers and who holds what, when evicting
// everything that nobody needs would not be enough, and then nothing is evicted.
Result<std::vector<Evicted>> make_room(CacheStore& store, const CacheConfig& config,
                                       const RoomRequest& request, const StopFlag& stop);

// What is staged and being copied, and what may still come.
Result<Usage> usage_of(CacheStore& store, const CacheConfig& config);

}  // namespace spark::staging
