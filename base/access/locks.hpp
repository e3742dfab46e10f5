// Locks among processes, on files and folders that no other user can open. A user who can open a file can
// also lock it, without a limit of time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark {

// Opens the file or folder and locks it. `doing` begins the messages. Unavailable after `limit`, with the
// holder's name.
Result<UniqueFd> lock_private(const std::filesystem::path& path, std::chrono::milliseconds limit,
                              const std::string& doing);

// Takes from others what they could do with it beyond `mode`; adds nothing. A missing one, and a public
// folder (with the sticky bit), stay as they are. Unsupported where the file system does not keep modes.
Result<> restrict_to(const std::filesystem::path& path, unsigned mode);

// A file as identified in the kernel's list of locks: by the device of its file system. On btrfs that is not
// the device reported by stat.
struct LockedFile {
  dev_t device = 0;
  ino_t inode = 0;
};
// None if it does not exist.
std::optional<LockedFile> locked_file(const SystemRoot& root, const std::filesystem::path& path);

// The processes with a lock on it, by number. `kind`: as in that list, FLOCK or POSIX.
std::set<std::string> lock_holders(const SystemRoot& root, const LockedFile& file, std::string_view kind);

// "flock (pid 4711, uid 1001)": processes other than this one with a lock on one of the files; empty if none
// is known.
std::string lock_holders_in_words(const SystemRoot& root, const std::vector<std::filesystem::path>& paths);

}  // namespace spark
