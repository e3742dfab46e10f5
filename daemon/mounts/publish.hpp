// Publishing: makes a writer's file system consistent for its readers. Workers only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "daemon/mounts/filesystems/published.hpp"

namespace spark::mounts {

enum class AfterPublish { ReadOnly, Writable };

struct Closed {
  Published published;
  std::uint64_t stamp = 0;  // of the superblock, as read by other hosts
};

// Flushes the writable mount at `target`, assigns the next generation number, empties the journal and makes
// mount and device read-only; with Writable they become writable again immediately. Refused, naming the
// programs, while any has files open for writing. After an error it is as writable as before, and a number
// may have been used up. On success, the device has been checked: it is no longer open for writing. `alone`:
// see make_writable.
Result<Closed> publish(const std::filesystem::path& target, const std::string& device,
                       const std::string& host, WallTime now, AfterPublish then, bool alone);

// The reverse; readers can see it when the call returns. `alone`: without a reservation; with multi-mount
// protection it then takes as long as a mount (mmp_wait).
Result<> make_writable(const std::filesystem::path& target, const std::string& device,
                       const std::string& host, WallTime now, bool alone);

}  // namespace spark::mounts
