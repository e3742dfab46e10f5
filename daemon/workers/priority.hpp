// Priority at the drive and the CPU.
#pragma once

#include <sys/types.h>

#include "base/result.hpp"

namespace spark::workers {

// Idle: the idle I/O class and the lowest CPU priority. Background: in addition, only CPU time that no other
// program wants (SCHED_IDLE).
enum class Priority { Normal, Idle, Background };

// For all threads of the process, and the threads that they start. Does not block. A process that has ended
// is no error.
Result<> set_priority(pid_t pid, Priority priority);

}  // namespace spark::workers
