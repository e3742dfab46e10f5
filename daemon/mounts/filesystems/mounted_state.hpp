// The state of a mounted file system as known to the kernel's memory. Workers only: it may wait for other
// programs that change the root folder, but never while the file system is shut down.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "daemon/mounts/filesystems/published.hpp"

namespace spark::mounts {

struct MountedState {
  bool is_shut_down = false;           // all access fails, although its device answers
  std::string uuid;                    // of the mounted file system; empty if this kernel does not report it
  std::string damage;                  // errors that the kernel found in it, as text; empty means none
  std::optional<Published> published;  // none: nothing was published, or it can't be read now
  bool is_written_since = false;       // a writer has opened it since it was published, or may have
  dev_t device = 0;  // that the path leads to: perhaps that of another mount; 0 means unknown
};

Result<MountedState> read_mounted_state(const std::filesystem::path& target);

}  // namespace spark::mounts
