// The content of an adopted folder: every file is read once, with direct I/O.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "fleet/adopted/folder.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::fleet {

// The manifest that a copy of the folder would have. Compares what is known of a model, see ModelCheck. It is
// right if the folder has the same state afterwards. `notes`: what earlier readings have left, and this one
// leaves; see ReadingNotes. Refused if a file has attributes that hosts do not exchange.
Result<staging::Manifest> hash_folder(const AdoptedFolder& folder, FolderNow now,
                                      const std::filesystem::path& notes, const StopFlag& stop);

// Fills in the hashes of all files, and compares nothing. Returns those that their drive can't read, with its
// errors.
Result<std::map<std::string, int>> read_content(FolderNow& now, staging::Monitor& monitor,
                                                const StopFlag& stop);

}  // namespace spark::fleet
