// The mounts for pods. All of them are on local file systems, or of live views, so no call waits for a
// target.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::csi {

enum class Place {
  Empty,     // nothing is mounted there
  Copy,      // mounted by this driver: read-only, without set-user-ID programs and devices
  Output,    // the same, but writable
  Something  // mounted by another program
};

// Usage of the copy's file system.
struct Usage {
  std::int64_t bytes = 0, free_bytes = 0, used_bytes = 0, inodes = 0, free_inodes = 0, used_inodes = 0;
};

enum class Access { ReadOnly, Writable };

class Mounter {
 public:
  virtual ~Mounter() = default;
  virtual Result<Place> look_at(const std::filesystem::path& target) = 0;
  // Mounts the folder at `target`, which is created if absent; either completely or not at all.
  virtual Result<> mount(const std::filesystem::path& folder, const std::filesystem::path& target,
                         Access access) = 0;
  // True if both are the same folder; detects whether the folder is mounted at the target.
  virtual bool is_same(const std::filesystem::path& folder, const std::filesystem::path& target) = 0;
  // Unmounts everything at the target and removes the empty folder. No error if neither exists.
  virtual Result<> unmount(const std::filesystem::path& target) = 0;
  virtual Result<Usage> usage(const std::filesystem::path& target) = 0;
};

class KernelMounter final : public Mounter {
 public:
  explicit KernelMounter(SystemRoot root = {}) : root_(std::move(root)) {}
  Result<Place> look_at(const std::filesystem::path& target) override;
  Result<> mount(const std::filesystem::path& folder, const std::filesystem::path& target,
                 Access access) override;
  bool is_same(const std::filesystem::path& folder, const std::filesystem::path& target) override;
  Result<> unmount(const std::filesystem::path& target) override;
  Result<Usage> usage(const std::filesystem::path& target) override;

 private:
  SystemRoot root_;  // for /proc/self/mountinfo
};

}  // namespace spark::csi
