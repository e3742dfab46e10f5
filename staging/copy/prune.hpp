// Takes away what an earlier attempt left in a partial area and this one can't use.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "staging/copy/partial/partial_area.hpp"
#include "staging/copy/resume.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// Leaves of `data` the files in `kept` and the folders that `entries` has; both sorted by path.
Result<> prune(const PartialArea& area, const Entries& entries, const Resumed& kept);

}  // namespace spark::staging
