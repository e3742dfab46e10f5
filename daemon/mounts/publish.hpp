// Publishing: makes a writer's file system consistent for its readers. Workers only.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "daemon/mounts/filesystems/published.hpp"

namespace spark::mounts {

enum class AfterPublish { ReadOnly, Writable };

// A mounted file system that is to be mounted otherwise, by this host.
struct Remounted {
  std::filesystem::path target;
  std::string device, host;
  WallTime now;
  bool alone = false;  // without a reservation
  // Right before the first change, and before it becomes writable: whether that is still allowed. Once the
  // kernel has begun a remount, nothing calls it back. `stamp`: of its superblock, if it was closed; 0 means
  // unknown.
  std::function<Result<>(std::uint64_t stamp)> check = [](std::uint64_t) { return Result<>(); };
};

struct Closed {
  Published published;
  std::uint64_t stamp = 0;   // of the superblock, as read by other hosts
  std::string not_writable;  // why it stays read-only, although it was to be made writable; otherwise empty
};

// How long it is tried again to make it writable after a publication.
constexpr std::chrono::seconds kReopening{30};

// Flushes the writable mount, assigns the next generation number, empties the journal and makes mount and
// device read-only; with Writable they become writable again immediately. Refused, naming the programs, while
// any has files open for writing. After an error it is as writable as before, unless the device has failed,
// and a number may have been used up. On success, the device has been checked: it is no longer open for
// writing.
Result<Closed> publish(const Remounted& mount, AfterPublish then);

// The reverse; readers can see it when the call returns. Alone, with multi-mount protection, it takes as long
// as a mount (mmp_wait).
Result<> make_writable(const Remounted& mount, std::uint64_t stamp = 0);

}  // namespace spark::mounts
