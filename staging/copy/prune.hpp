// Removes the files of an earlier attempt from a partial area that this attempt can't use.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "staging/copy/partial/partial_area.hpp"
#include "staging/copy/resume.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// Keeps in `data` only the files in `kept` and the folders in `entries`; both sorted by path.
Result<> prune(const PartialArea& area, const Entries& entries, const Resumed& kept);

}  // namespace spark::staging
