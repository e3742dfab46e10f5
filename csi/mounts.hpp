// The mounts that pods see. Everything here is on local file systems: none of it waits for a target.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::csi {

enum class Place {
  Empty,     // nothing is mounted there
  Copy,      // mounted as this driver does: read-only, without set-user-ID programs and devices
  Output,    // the same, but writable
  Something  // mounted by another program
};

// Of the file system that a copy lies on.
struct Usage {
  std::int64_t bytes = 0, free_bytes = 0, used_bytes = 0, inodes = 0, free_inodes = 0, used_inodes = 0;
};

enum class Access { ReadOnly, Writable };

class Mounter {
 public:
  virtual ~Mounter() = default;
  virtual Result<Place> look_at(const std::filesystem::path& target) = 0;
  // Shows the folder at `target`, which is made where it is absent: completely or not at all.
  virtual Result<> mount(const std::filesystem::path& folder, const std::filesystem::path& target,
                         Access access) = 0;
  // Whether both are one folder, as of a target at which the folder is mounted.
  virtual bool is_same(const std::filesystem::path& folder, const std::filesystem::path& target) = 0;
  // Unmounts whatever is there and removes the empty folder. No error if there is neither.
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
  SystemRoot root_;  // of /proc/self/mountinfo
};

}  // namespace spark::csi
