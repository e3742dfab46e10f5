// A command that this program was given to run.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spark::cli {

using Environment = std::map<std::string, std::string>;  // added to this process's

// Replaces this process by the command. It keeps our process ID: our leases end with it, and a program that
// signals us, or waits for us, reaches the command itself. `afterwards`, unless it is empty, runs once the
// command has ended, in a process that no signal but SIGKILL ends and that has none of our open files but
// stderr. Returns only if the command could not be started, and then `afterwards` does not run: NotFound,
// Denied, …
Result<int> become(const std::vector<std::string>& command, const Environment& more,
                   const std::function<void()>& afterwards);

// Runs the command to its end: its exit status, or 128 and the signal's number. It is in our process group,
// so that ^C, ^Z and `fg` reach both; as with time(1), ^C ends only the command. It gets SIGTERM when we die.
Result<int> run_in_foreground(const std::vector<std::string>& command);

// For ^C at a terminal, once everything is cleaned up: ends this process by SIGINT, which has its default
// action. A shell then ends the loop or the list that we are a part of; after a normal end with status 130 it
// would go on. Returns where we are not in the foreground of a terminal.
void end_by_interrupt();

}  // namespace spark::cli
