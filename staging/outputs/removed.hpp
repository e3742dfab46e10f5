// Folders of checkpoints, here and on a volume: their names, and the name of what is being deleted.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spark::staging {

// What ends the name, after a dot at its beginning, of a checkpoint that is being deleted: a removal that was
// interrupted is completed by the next one.
inline constexpr char kRemoved[] = ".spark-removed";

Result<std::vector<std::string>> names_of(const std::filesystem::path& folder);

}  // namespace spark::staging
