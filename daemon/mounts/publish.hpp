// Publishing: the one moment in which a writer's file system becomes whole for its readers. Workers only.
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
  std::uint64_t stamp = 0;  // of the superblock, as readers find it
};

// Flushes what is mounted for writing at `target`, gives it the next generation's number, empties its journal
// and makes mount and device read-only; with Writable it is made writable again at once. Refused, naming
// them, while programs have files open for writing. On an error it is as writable as before, and a number may
// have been used up. Proven on the device: nobody has it open for writing any more. `alone`: see
// make_writable.
Result<Closed> publish(const std::filesystem::path& target, const std::string& device,
                       const std::string& host, WallTime now, AfterPublish then, bool alone);

// The other way round; its readers see it when it returns. `alone`: without a reservation; with multi-mount
// protection it then takes as long as a mount (mmp_wait).
Result<> make_writable(const std::filesystem::path& target, const std::string& device,
                       const std::string& host, WallTime now, bool alone);

}  // namespace spark::mounts
