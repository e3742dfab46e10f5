// The cache of a request, opened by a worker.
#pragma once

#include <memory>

#include "base/file.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "staging/cache/cache.hpp"

namespace spark::workers {

// "cache" of the request: see to_json(CacheSettings).
Result<staging::CacheConfig> cache_config_of(const json::object& request);

// The cache as this worker changes it. Jobs see its copies read-only, or `served` says why not.
struct OpenCache {
  std::unique_ptr<staging::Cache> cache;
  Result<Change> served = Change::AlreadyThere;
  UniqueFd host;  // the root of the host's mount namespace: this worker may have one of its own
};
Result<OpenCache> open_cache(const json::object& request);

}  // namespace spark::workers
