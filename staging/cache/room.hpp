// Room in the cache for one more copy: promised before its first byte, made by evicting others.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "staging/cache/cache.hpp"
#include "staging/cache/cache_store.hpp"
#include "staging/copy/copy_with.hpp"
#include "staging/copy/need.hpp"

namespace spark::staging {

struct RoomRequest {
  std::string dataset;  // the caller has its lock
  Footprint whole;      // of all of the copy
  Footprint shared;     // of it, what an older copy has already
  Need need;            // of it, what is still to be written
  Bytes keep_free = 0;
  ProcessId answers_for;                 // the reservation is void when it ends
  std::uint64_t task = 0;                // see Reservation
  std::vector<InUse> in_use;             // never evicted
  bool is_prefetch = false;              // spares what others have prefetched, and waits for no obstacle
  std::vector<std::string> prefetching;  // datasets whose copies under way may be ended for it
  RoomTimings timings;
  std::function<void(std::string)> say;  // what it waits for; empty: nothing any more
};

struct Room {
  std::vector<Evicted> evicted;
  std::vector<std::string> blocked_by;  // prefetches that have to end first; then nothing is reserved
};

// Reserves the room, after evicting what has to go for it (see eviction.hpp). One process at a time: two
// copies never count on the same free bytes. What deleting each victim gives back is known before the first
// is deleted: copies whose files are open or mapped are spared, and waited for where the room can't be made
// without them. Victims are chosen once; the space of their files is waited for, and no other copy is deleted
// in its place. NoSpace, with the numbers and who holds what, when evicting everything that nobody needs
// would not be enough, and then nothing is evicted.
Result<Room> make_room(CacheStore& store, const CacheConfig& config, const RoomRequest& request,
                       const StopFlag& stop);

}  // namespace spark::staging
