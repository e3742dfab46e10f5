// The checkpoints that a job writes to a folder of this host: an explicit rule determines which of its
// entries they are, and when they are complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "staging/checkpoints/completeness.hpp"

namespace spark::staging {

struct Checkpoint {
  std::string name;
  std::int64_t mtime_ns = 0;    // of the entry itself: when the job last added something to it
  std::int64_t changed_ns = 0;  // the newest change of anything in it
  std::int64_t written = 0;     // identifies its state: TreeTotals::written
  Bytes bytes = 0;
  std::uint64_t entries = 0;  // TreeTotals::entries
  std::uint64_t inode = 0;    // of the entry itself
  std::string incomplete;     // why it is not complete; empty means complete
  bool is_settling = false;   // complete by its rule, but changed a moment ago
  bool is_unproven = false;   // it may be complete, but that can't be known
  // Until it is written again, as a later look may find no sign of it: see mark_unproven, or a clock was set
  // back after its proof was written, and before something else in it was. Data that an interrupted save has
  // written again look older than the proof then.
  bool stays_unproven = false;
  bool is_in_future = false;  // it changed clearly later than now, by the clock
};

// What was known of checkpoints at earlier looks, by name: each for the state with that
// Checkpoint::written (in records of version 0.2.0: changed_ns).
using KnownStates = std::map<std::string, std::int64_t>;

// The highest first (is_above). Symbolic links, and entries that are no checkpoints by their names (kind_of),
// are not listed. An entry that changed within `settled` before `now`, or after it by a clock that was set
// back, is incomplete, unless it has been as it is for a while (`unchanged`). `known`: the complete ones that
// were on the drive.
Result<std::vector<Checkpoint>> list_checkpoints(const std::filesystem::path& folder,
                                                 const Completeness& completeness, WallTime now,
                                                 Duration settled, const KnownStates& unchanged = {},
                                                 const KnownStates& known = {});

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
// or is in one, stays. So does one with a file that a process has open. Returns the names deleted.
Result<std::vector<std::string>> remove_checkpoints(const std::filesystem::path& folder,
                                                    const std::map<std::string, std::int64_t>& seen,
                                                    const std::vector<std::filesystem::path>& sources);

}  // namespace spark::staging
