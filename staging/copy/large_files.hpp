// Copies files through the lanes, with the number and size of requests that shape_of() chooses.
#pragma once

#include <vector>

#include "staging/copy/lanes/options.hpp"
#include "staging/copy/resume.hpp"
#include "staging/copy/transfer/copy_context.hpp"

namespace spark::staging {

Result<> copy_large_files(CopyContext& context, const CopyOptions& options, const std::vector<Entry*>& files,
                          const Resumed& resumed, const Entries& entries);

}  // namespace spark::staging
