// Checks of a connection's settings before it is made. Pure. Errors are Invalid and name the
// config's keys.
#pragma once

#include <string>

#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

// Combinations of timers that the kernel or the specification can't do, and values out of range.
Result<> validate(const ConnectOptions& options);

// A port of 0, or invalid characters in an address. Names are not resolved.
Result<> validate(const Portal& portal);

// 1 to 223 bytes that can stand in the kernel's comma-separated option string. `nqn.` in front is not asked
// for: targets with bare names exist. `role` is for the sentence: "subsystem", "host NQN".
Result<> validate_nqn(const std::string& nqn, const std::string& role);

// The value of io_queues = 0 for this number of CPUs. Each queue is a TCP connection, so not one per CPU.
unsigned automatic_io_queues(unsigned online_cpus);

}  // namespace spark::nvmetcp
