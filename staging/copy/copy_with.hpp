// copy() with the places where tests interfere.
#pragma once

#include <chrono>

#include "base/threads.hpp"
#include "staging/copy/copy.hpp"
#include "staging/copy/partial/publish.hpp"

namespace spark::staging {

// How long a copy waits for its room; see make_room.
struct RoomTimings {
  std::chrono::milliseconds obstacle{120'000};  // until a victim's files are closed, or its lock is released
  std::chrono::milliseconds freeing{60'000};    // until the space of deleted files is free
  std::chrono::milliseconds lock{10'000};       // an eviction, until another process is done with its dataset
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
