// The members of the objects that requests have as their bodies. A name has one type in all requests.
#pragma once

#include "base/json.hpp"
#include "base/result.hpp"

namespace spark {

// Invalid: a member that no request has, or of another type than it has to be. Ignored, a lease would not be
// held, or a question be an order. null is as good as none.
Result<> check_members(const json::object& body);

// Removes those that are null; but null for wait_s is no limit.
void drop_nulls(json::object& body);

}  // namespace spark
