// The lock of every process that reserves space in a cache, or evicts to reserve.
#pragma once

#include <functional>
#include <string>

#include "base/file.hpp"
#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/cache/folder/cache_folder.hpp"

namespace spark::staging {

// Waits for it; `say` reports the reason, and empty ends the wait. It ends with the descriptor.
Result<UniqueFd> lock_space(const CacheFolder& folder, const std::function<void(std::string)>& say,
                            const StopFlag& stop);

}  // namespace spark::staging
