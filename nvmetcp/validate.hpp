// What can be told wrong about a connection before anything is touched. Pure. Errors are Invalid and name the
// config's keys.
#pragma once

#include <string>

#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

// Combinations of timers that the kernel or the specification can't do, and values out of range.
Result<> validate(const ConnectOptions& options);

// A port of 0, or an address that holds what no address holds. Names are not resolved.
Result<> validate(const Portal& portal);

// 1 to 223 bytes that can stand in the kernel's comma-separated option string. `nqn.` in front is not asked
// for: targets with bare names exist. `role` is for the sentence: "subsystem", "host NQN".
Result<> validate_nqn(const std::string& nqn, const std::string& role);

// What io_queues = 0 stands for on a host with this many CPUs: one TCP connection each, so not one a CPU.
unsigned automatic_io_queues(unsigned online_cpus);

}  // namespace spark::nvmetcp
