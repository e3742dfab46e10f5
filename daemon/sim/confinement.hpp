// Keeps a simulation away from the host on which it runs, and from the state of a real daemon.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace spark::sim {

// Drops every privilege, also for future workers: mounts, connects and reservations then fail, even for root.
Result<> drop_privileges();

// A state folder belongs either to simulations or to the host; its first use decides. Invalid if it is of the
// other kind.
Result<> claim_state_folder(const std::filesystem::path& folder);
Result<> check_not_simulated(const std::filesystem::path& folder);

}  // namespace spark::sim
