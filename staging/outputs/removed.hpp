// Names in folders of checkpoints, on this host and on a volume, and the name of a checkpoint that is being
// deleted.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spark::staging {

// Suffix of the name of a checkpoint that is being deleted; the name begins with a dot. The next removal
// completes an interrupted one.
inline constexpr char kRemoved[] = ".spark-removed";

Result<std::vector<std::string>> names_of(const std::filesystem::path& folder);

}  // namespace spark::staging
