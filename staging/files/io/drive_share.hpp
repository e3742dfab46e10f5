// How much of a drive a copy may take while others use it: little, so that they hardly notice. The idle I/O
// class does that only where the drive has a scheduler that knows it (bfq), and NVMe drives mostly have none.
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace spark::staging {

// Finds out from two counters whether others use a drive. A function of what it is given: it has no clock.
class OthersUse {
 public:
  // Both counters in bytes, of the drive and of the copy alone. Gives the bytes per second that the copy may
  // move; 0: no limit. Without others it stops to look at times, as a copy at full speed hides what is slow
  // beside it.
  Bytes limit(Bytes moved_by_drive, Bytes moved_by_copy, SteadyTime now);

 private:
  struct Moment {
    SteadyTime when{};
    Bytes by_drive = 0, by_copy = 0;
  };
  std::optional<Moment> begin_;  // of what is compared
  SteadyTime free_since_{};      // since when there is no limit
  Bytes limit_ = 0;

  void start(const Moment& now, Bytes limit);
};

// Of the drive that a folder is on. Functions are called from any thread.
class DriveShare {
 public:
  // `root`: of sysfs, for tests. Never a limit where the kernel has no counters: NFS, tmpfs.
  explicit DriveShare(dev_t device, const std::filesystem::path& root = "/sys");

  // Before the copy asks the drive for `bytes`: the bytes per second that it may move now; 0: no limit. No
  // limit either for a thread that is not in the idle I/O class.
  Bytes limit(Bytes bytes, SteadyTime now);

 private:
  std::filesystem::path counters_;
  std::mutex mutex_;
  OthersUse others_;
  Bytes asked_for_ = 0;
  SteadyTime read_at_{};
  Bytes limit_ = 0;
};

}  // namespace spark::staging
