// The content of an adopted folder: every file is read once, with direct I/O.
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "fleet/adopted/folder.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::fleet {

// The manifest that a copy of the folder would have. Compares what is known of a model, see ModelCheck. It is
// right if the folder has the same state afterwards. `notes`: what an interrupted reading has left, and this
// one leaves; see ReadingNotes.
Result<staging::Manifest> hash_folder(const AdoptedFolder& folder, FolderNow now,
                                      const std::filesystem::path& notes, const StopFlag& stop);

// Fills in the hashes of all files, and compares nothing.
Result<> read_content(FolderNow& now, staging::Monitor& monitor, const StopFlag& stop);

}  // namespace spark::fleet
