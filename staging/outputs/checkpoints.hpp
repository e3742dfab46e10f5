// The checkpoints that a job writes to a folder of this host: an explicit rule determines which of its
// entries they are, and when they are complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "staging/checkpoints/checkpoint.hpp"
#include "staging/checkpoints/completeness.hpp"

namespace spark::staging {

// The highest first (is_above). Symbolic links, and entries that are no checkpoints by their names (kind_of),
// are not listed. An entry that changed within `settled` before `now`, or after it by a clock that was set
// back, is incomplete, unless it has been as it is for a while (`unchanged`). `known`: the complete ones that
// were on the drive. Both are of earlier looks.
Result<std::vector<Checkpoint>> list_checkpoints(const std::filesystem::path& folder,
                                                 const Completeness& completeness, WallTime now,
                                                 Duration settled, const KnownStates& unchanged = {},
                                                 const KnownStates& known = {});

// A folder that the rule does not count, and another rule would, by its name. Empty if there is none.
std::string misnamed_folder(const std::filesystem::path& folder, Completeness::Rule rule);

// A complete checkpoint that is older than the host's boot counts as incomplete unless it is `known` to have
// been on the drive: a power cut may have left holes in it. So does one that stays unproven, also since an
// earlier look (`unproven`). Returns whether there are unknown ones since the boot, which need to be flushed.
// `boot_ns` may be unknown.
bool mark_unproven(std::vector<Checkpoint>& checkpoints, const std::filesystem::path& folder,
                   const KnownStates& known, std::optional<std::int64_t> boot_ns,
                   const KnownStates& unproven = {});

// Deletes entries of a job's folder, each with one rename before any of its files is deleted, and the remains
// of an interrupted call. `seen` has their names and their Checkpoint::written when that was decided: an
// entry that has changed since stays, because a job has saved the same name again. A missing entry is no
// error. `sources` are the files and folders that copies read: an entry that is one of them, or contains one,
// or is in one, stays. So does one with a file that a process has open, and one whose files can't be deleted,
// which does not keep the others. Calls `on_removal` with the name right before one is deleted, and returns
// the first failure.
Result<> remove_checkpoints(const std::filesystem::path& folder, const KnownStates& seen,
                            const std::vector<std::filesystem::path>& sources,
                            const std::function<void(const std::string&)>& on_removal);

}  // namespace spark::staging
