// One daemon for each state folder. A second one would end the live views of the first, and bring up the
// volumes that the first took down.
#pragma once

#include <chrono>
#include <filesystem>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark {

// The folder is this process's as long as the descriptor is open. Unavailable: another daemon has had it for
// `patience`. No descriptor where the folder is missing, or can't have a lock: a daemon runs also then.
Result<UniqueFd> lock_state(const std::filesystem::path& state_dir, std::chrono::milliseconds patience);

}  // namespace spark
