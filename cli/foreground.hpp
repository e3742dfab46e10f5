// A command in this terminal's foreground, as a shell runs one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spark::cli {

using Environment = std::map<std::string, std::string>;  // added to this process's

// Runs it to its end: its exit status, or 128 and the signal's number. It stays in our process group, so that
// ^C, ^Z and `fg` reach both; signals that another process sends us (scancel, systemctl stop) are passed on.
// It gets SIGTERM when we die, since our leases end then. NotFound, Denied, …: it could not be started.
Result<int> run_in_foreground(const std::vector<std::string>& command, const Environment& more);

}  // namespace spark::cli
