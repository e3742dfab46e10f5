// Who goes first at the drive and the CPU.
#pragma once

#include <sys/types.h>

#include "base/result.hpp"

namespace spark::workers {

// Idle: the idle I/O class and the lowest CPU priority. Background: also no CPU time that any other program
// wants (SCHED_IDLE).
enum class Priority { Normal, Idle, Background };

// For all threads of the process, and those that they start. Reads and sets only what can't block. A process
// that has ended is no error.
Result<> set_priority(pid_t pid, Priority priority);

}  // namespace spark::workers
