// The share of a drive that a copy may use while others use it: small, so that they hardly notice. The idle
// I/O class only has this effect with a scheduler that supports it (bfq), and NVMe drives mostly have none.
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>

#include "base/clock.hpp"
#include "base/units.hpp"

namespace spark::staging {

// Detects from two counters whether others use a drive. Depends on its arguments only: it has no clock.
class OthersUse {
 public:
  // Both counters are in bytes: of the drive, and of the copy alone. Returns the bytes per second that the
  // copy may move; 0 means no limit. Without other users it still limits the copy from time to time to check,
  // because a copy at full speed hides slow users beside it.
  Bytes limit(Bytes moved_by_drive, Bytes moved_by_copy, SteadyTime now);

 private:
  struct Moment {
    SteadyTime when{};
    Bytes by_drive = 0, by_copy = 0;
  };
  std::optional<Moment> begin_;  // start of the interval that is compared
  SteadyTime free_since_{};      // since when there has been no limit
  Bytes limit_ = 0;

  void start(const Moment& now, Bytes limit);
};

// For the drive of a folder. Functions are called from any thread.
class DriveShare {
 public:
  // `root` of sysfs can be set by tests. Never a limit if the kernel has no counters: NFS, tmpfs.
  explicit DriveShare(dev_t device, const std::filesystem::path& root = "/sys");

  // Called before the copy requests `bytes` from the drive. Returns the bytes per second that it may move
  // now; 0 means no limit. A thread outside the idle I/O class gets no limit either.
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
