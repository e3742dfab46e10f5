// Reads an adopted folder again: drives lose bytes, and nothing else shows it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "fleet/adopted/folder.hpp"
#include "staging/copy/lanes/progress.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::fleet {

struct VerifiedFolder {
  staging::Summary summary;
  double seconds = 0;
};

// Compares all files with what is offered. Mismatch names those that differ; the offer has ended then, and
// stays ended until each of them is another file, or has other times. Unavailable if the folder is not
// offered now, or changes meanwhile.
Result<VerifiedFolder> verify_folder(const AdoptedFolder& folder, const std::filesystem::path& state_dir,
                                     const staging::ProgressSink& progress, const StopFlag& stop);

// That Mismatch.
Error damaged_content(const staging::Tree& tree, const std::vector<std::string>& damaged);

}  // namespace spark::fleet
