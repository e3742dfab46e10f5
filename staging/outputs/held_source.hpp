// A checkpoint that is held while it is sent: hard links to its files, in a hidden folder beside the job's.
// The job's rotation may delete the checkpoint meanwhile. The folder is not in the job's, since frameworks
// list theirs, hidden names included. A file that is written again in place changes in the held one too,
// which the copy notices.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spark::staging {

// The hidden folder of this job folder, which may be gone; there is none while nothing is held.
std::filesystem::path holding_folder(const std::filesystem::path& job_folder);

// Returns the path of the held checkpoint, with the same times. Mismatch if it is not as it was when it was
// last written at `written`. NoSpace if the drive, or the user's quota, has less room than one more
// checkpoint of its size takes: the job needs it. Unsupported if the file system has no hard links.
Result<std::filesystem::path> hold_checkpoint(const std::filesystem::path& job_folder,
                                              const std::string& name, std::int64_t written);

// Deletes what is in a holding folder but these, also what a killed worker has left, and the folder once it
// is empty. Nothing in a folder that holds none: others may give it that name.
Result<> release_checkpoints(const std::filesystem::path& holding_folder,
                             const std::vector<std::string>& keep);
// How many checkpoints it holds, with what a killed worker has left.
std::size_t held_in(const std::filesystem::path& holding_folder);

}  // namespace spark::staging
