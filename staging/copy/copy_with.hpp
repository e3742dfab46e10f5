// copy() with hooks for tests.
#pragma once

#include <chrono>

#include "base/threads.hpp"
#include "staging/copy/copy.hpp"
#include "staging/copy/partial/publish.hpp"

namespace spark::staging {

// How long a copy waits for its space; see make_room.
struct RoomTimings {
  std::chrono::milliseconds obstacle{120'000};  // until a victim's files are closed, or its lock is released
  std::chrono::milliseconds freeing{60'000};    // until the space of deleted files is free
  // For an eviction: until another process has released the dataset's lock.
  std::chrono::milliseconds lock{10'000};
};

struct CopyHooks {
  std::function<void(const std::string& path, Bytes offset)> before_read;
  StepHook step;
  RoomTimings room;
};

Result<CopyReport> copy_with(const CopyHooks& hooks, const std::filesystem::path& source,
                             const std::filesystem::path& destination, const CopyOptions& options,
                             const ProgressSink& progress, const StopFlag& stop);

}  // namespace spark::staging
