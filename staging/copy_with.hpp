// copy() with the places where tests interfere.
#pragma once

#include "staging/copy.hpp"
#include "staging/publish.hpp"

namespace spark::staging {

struct CopyHooks {
  std::function<void(const std::string& path, Bytes offset)> before_read;
  StepHook step;
};

Result<CopyReport> copy_with(const CopyHooks& hooks, const std::filesystem::path& source,
                             const std::filesystem::path& destination, const CopyOptions& options,
                             const ProgressSink& progress, const StopFlag& stop);

}  // namespace spark::staging
