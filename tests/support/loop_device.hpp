// File systems on real loop devices, for tests that run as root.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"

namespace spark::test {

// Runs a tool and waits for it; throws with its output if it fails.
std::string run_tool(const std::vector<std::string>& argv);

// Creates a file of `bytes` and formats it: make_image(path, 64 << 20, {"mkfs.ext4", "-q"}).
void make_image(const std::filesystem::path& image, std::size_t bytes, std::vector<std::string> mkfs);

// /dev/loopN backed by a file; detached after the last unmount.
class LoopDevice {
 public:
  explicit LoopDevice(const std::filesystem::path& image);
  ~LoopDevice();
  LoopDevice(LoopDevice&& other) noexcept = default;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  UniqueFd fd_;
};

// Empty if this process can attach loop devices and mount; otherwise the reason. From the first call on, what
// it mounts is seen by this process alone.
std::string why_no_loop_mounts();

}  // namespace spark::test
