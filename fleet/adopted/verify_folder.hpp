// Reads an adopted folder again: drives lose bytes, and nothing else shows it.
#pragma once

#include <cstdint>
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
  std::uint64_t sha256_files = 0;  // that were compared
};

// Compares all files with what is offered, or was offered last if nothing has changed since: then the offer
// returns. Mismatch names those that differ, or that can't be read (is_damage); the offer has ended then, and
// stays ended until each of them is another file, or has other times, or a verification finds it right.
// Unavailable if the folder is not offered now, or changes meanwhile. `sha256`: then compares the publishers'
// digests too, see check_digests; the offer stays, as a difference is already in what was downloaded.
Result<VerifiedFolder> verify_folder(const AdoptedFolder& folder, const std::filesystem::path& state_dir,
                                     bool sha256, const staging::ProgressSink& progress,
                                     const StopFlag& stop);

// That Mismatch. `damaged`: see in_words.
Error damaged_content(const staging::Tree& tree, const std::vector<std::string>& damaged);

}  // namespace spark::fleet
