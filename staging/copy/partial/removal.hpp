// Names in folders of checkpoints, on this host and on a volume, and the deletion of one of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spark::staging {

Result<std::vector<std::string>> names_of(const std::filesystem::path& folder);

// An entry disappears by one durable rename before any of it is deleted: after a power cut it is either
// complete, or its name is gone. Returns the name of what is then to be deleted, which begins with a dot.
Result<std::string> rename_for_removal(const std::filesystem::path& folder, const std::string& name);
// Denied if this user may not empty one of its folders: a deletion would end in the middle. A job that runs
// as root in a container leaves folders of root.
Result<> check_deletable(const std::filesystem::path& path);
// Deletes what an interrupted removal has left. Goes on after a failure, and returns the first.
Result<> finish_removals(const std::filesystem::path& folder);

}  // namespace spark::staging
