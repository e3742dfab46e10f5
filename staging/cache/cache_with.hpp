// Cache::open with hooks for tests.
#pragma once

#include "staging/cache/cache.hpp"
#include "staging/copy/copy_with.hpp"

namespace spark::staging {

// The step hook is called after "manifest", "rename", "flush" (see publish), "published", "committed",
// "linked"; and during an eviction after "marked", "unlinked", "trashed", "forgotten".
Result<std::unique_ptr<Cache>> open_cache_with(const CopyHooks& hooks, const CacheConfig& config,
                                               const Clock& clock);

}  // namespace spark::staging
