// Leases in files and messages.
#pragma once

#include "base/json.hpp"
#include "staging/leases/lease.hpp"

namespace spark::staging {

// Times as seconds since 1970, 0 means none.
json::object to_json(const Lease& lease);
Lease lease_from_json(const json::object& object);

}  // namespace spark::staging
