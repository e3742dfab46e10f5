// From the configured portal to the numeric ones behind it. Blocks on the name service: workers only.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

// The portal itself if its address is numeric, else one for each address of the name, in the order in which
// they should be tried (at most 4). Resolved at every attempt, because the kernel never does. Unavailable:
// the name can't be resolved now.
Result<std::vector<Portal>> resolve(const Portal& portal);

// An IPv4 or IPv6 address, no name.
bool is_numeric(const std::string& address);

// Whether two numeric addresses are the same one, however they are written. "fe80::1" is that of any
// interface.
bool same_address(const std::string& a, const std::string& b);

// One TCP connection to a numeric portal, closed again. The kernel's own connect holds a lock that every
// other connect of the machine waits for, and can't be interrupted: a target that is not there is found out
// here instead. Unavailable: refused, unreachable or silent. Invalid: no such interface.
Result<> reach(const Portal& numeric, const std::string& interface, std::chrono::milliseconds deadline);

// The size of IP packets that both ends agreed upon for a TCP connection to a numeric portal: at most the MTU
// of either card, whatever a switch between them lets through. Errors as of reach().
Result<unsigned> negotiated_packet(const Portal& numeric, const std::string& interface,
                                   std::chrono::milliseconds deadline);

// Why a TCP connection did not come about. Unavailable, whatever the number.
Error explain_unreachable(int number, const std::string& portal, const std::string& interface);

}  // namespace spark::nvmetcp
