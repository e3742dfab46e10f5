// What keeps a simulation off the host that it runs on, and off the state of a real daemon.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace spark::sim {

// Gives up every privilege, of the workers to come as well: what would mount, connect or reserve fails, for
// root too.
Result<> drop_privileges();

// A state folder serves either simulations or the host, and begins as one of the two. Invalid: it is the
// other kind's.
Result<> claim_state_folder(const std::filesystem::path& folder);
Result<> check_not_simulated(const std::filesystem::path& folder);

}  // namespace spark::sim
