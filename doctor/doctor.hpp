// Checks this host, its network and its targets. Changes nothing; checks that can hang have a deadline.
#pragma once

#include "doctor/checks/host.hpp"
#include "doctor/network/links.hpp"

namespace spark::doctor {

Report examine(const Host& host);

// The network alone, with real data: the way to each target, each target's reads, and the link to each peer.
Report examine_network(const Host& host, const LinkMeter& meter);

}  // namespace spark::doctor
