// Opens a request's cache in a worker.
#pragma once

#include <memory>

#include "base/file.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "staging/cache/cache.hpp"

namespace spark::workers {

// From "cache" in the request: see to_json(CacheSettings).
Result<staging::CacheConfig> cache_config_of(const json::object& request);

// The cache, open for changes by this worker. Jobs see its copies read-only, otherwise `served` has the
// reason.
struct OpenCache {
  std::unique_ptr<staging::Cache> cache;
  Result<Change> served = Change::AlreadyThere;
  UniqueFd host;  // root of the host's mount namespace: this worker may have a private one
};
// Unavailable if the catalog is missing: only a staging and a recovery make one, and only for a daemon that
// has not seen it since its start ("knows_catalog").
Result<OpenCache> open_cache(const json::object& request);
Result<OpenCache> open_cache_to_stage(const json::object& request);
Result<OpenCache> open_cache_to_recover(const json::object& request);

}  // namespace spark::workers
