// Generations that a newer one of their dataset replaces: they are of no use for a later request, so they
// make room before any dataset does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "staging/cache/inventory.hpp"

namespace spark::staging {

// Deletes those that are not in use, one after the other, as long as `goes_on` returns true. `own` is the key
// of a dataset that the caller has locked.
Result<> delete_superseded(CacheStore& store, const Inventory& inventory, const std::vector<InUse>& in_use,
                           const std::string& own, const StopFlag& stop,
                           const std::function<Result<bool>()>& goes_on);

}  // namespace spark::staging
