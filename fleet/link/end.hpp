// One end of a connection between two hosts, as its own host describes it to the other one.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/network/nics.hpp"
#include "fleet/link/load.hpp"

namespace spark::fleet {

struct LinkEnd {
  std::string interface;  // that has the address of this end; empty: unknown
  unsigned megabits = 0;  // 0: unknown, also the next
  unsigned mtu = 0;
  Bytes received = 0, sent = 0;      // by that card, since it was made
  Bytes limit = 0;                   // bytes per second that this host sends at most now; 0: no limit
  std::vector<Nic> cards;            // with a link and addresses: name, megabits, and addresses as networks
  Load load;                         // of the thread that answers, and of the host
  std::chrono::nanoseconds clock{};  // when the counters were read, since a moment of that host; 0: unknown
};

// The end with this address, on this host.
LinkEnd end_at(const std::string& address, Bytes limit);

json::object to_json(const LinkEnd& end);
LinkEnd link_end_from(const json::object& object);

}  // namespace spark::fleet
