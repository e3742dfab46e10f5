// The maximum size of a cache.
#pragma once

#include "base/result.hpp"
#include "staging/cache/cache.hpp"
#include "staging/copy/need.hpp"
#include "staging/files/space.hpp"

namespace spark::staging {

Footprint room_limit(const CacheConfig& config, const Space& space, Bytes keep_free);

// NoSpace: the copy would not fit even into an empty cache.
Result<> check_fits(const Footprint& copy, const Footprint& limit);

}  // namespace spark::staging
