// Datasets as shown to people and scripts.
#pragma once

#include "base/json.hpp"
#include "base/result.hpp"
#include "daemon/datasets/catalog.hpp"
#include "daemon/datasets/context.hpp"
#include "daemon/datasets/leases/leases.hpp"
#include "daemon/datasets/task.hpp"
#include "daemon/jobs.hpp"

namespace spark::datasets {

// The object of `ls --json`.
Result<json::object> list(const Context& context, const Activity& activity, const Catalog& known,
                          const Leases& leases, const Jobs& jobs);

// `stages` of `status --json`.
json::array stages(const Activity& activity, const Jobs& jobs);

}  // namespace spark::datasets
