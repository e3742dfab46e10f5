// Space in the cache for one more copy: reserved before its first byte, freed by evicting others.
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
  Footprint whole;      // of the complete copy
  Footprint shared;     // the part that an older copy has already
  Need need;            // the part that is still to be written
  Bytes keep_free = 0;
  ProcessId answers_for;                 // the reservation ends with this process
  std::uint64_t task = 0;                // see Reservation
  std::vector<InUse> in_use;             // never evicted
  bool is_prefetch = false;              // evicts no prefetched copies, and waits for no obstacle
  std::vector<std::string> prefetching;  // datasets with copies in progress that may be ended for this one
  RoomTimings timings;
  std::function<void(std::string)> say;  // reports the reason for waiting; empty ends the wait
};

struct Room {
  std::vector<Evicted> evicted;
  std::vector<std::string> blocked_by;  // prefetches that have to end first; if any, nothing is reserved
};

// Reserves the space, after evicting the victims (see eviction.hpp). One process at a time, so that two
// copies never count on the same free bytes. The space that each victim frees is determined before the first
// is deleted. Copies with open or mapped files are spared; if the space can't be made without them, it waits
// until the files are closed. Victims are chosen once: it waits until their space is free, and no other copy
// is deleted instead. NoSpace, with the numbers and the holders, if evicting everything that may be
// evicted would not be enough; then nothing is evicted.
Result<Room> make_room(CacheStore& store, const CacheConfig& config, const RoomRequest& request,
                       const StopFlag& stop);

}  // namespace spark::staging
