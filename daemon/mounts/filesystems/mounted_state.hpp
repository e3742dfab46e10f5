// What a mounted file system says of itself, as far as the kernel has it in memory. Workers only: it may wait
// for other programs that change the root folder, though never while the file system is shut down.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "daemon/mounts/filesystems/published.hpp"

namespace spark::mounts {

struct MountedState {
  bool is_shut_down = false;           // it gives nothing but errors, although its device answers
  std::string uuid;                    // of what was mounted; empty: this kernel does not tell
  std::string damage;                  // errors that the kernel found in it, in words; empty: none
  std::optional<Published> published;  // none: nothing was, or it can't be told now
};

Result<MountedState> read_mounted_state(const std::filesystem::path& target);

}  // namespace spark::mounts
