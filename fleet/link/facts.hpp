// The measured facts about the link to one peer.
#pragma once

#include <optional>
#include <string>

#include "base/network/nics.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

namespace spark::fleet {

// One direction.
struct WayRate {
  double bytes_per_second = 0;         // of the measurement, while it moved data
  double card_bytes_per_second = 0;    // that the card moved meanwhile, for others too
  double share = 1;                    // of the time in which it moved data; the rest were pauses
  Bytes bytes = 0;                     // in all
  double own_busy = 0, peer_busy = 0;  // see busy_share(): of this host, and of the peer
  Bytes limit = 0;                     // bytes per second that the sender may use now; 0: no limit
  std::optional<Error> error{};        // nothing was measured
};

// A faster card of this host that leads to the peer, too.
struct BetterWay {
  std::string card;
  unsigned megabits = 0;
  std::string address;  // of the peer
};

struct LinkFacts {
  std::string peer, address;        // the peer's name, and its address as a number
  std::optional<Error> error;       // there was no connection; nothing else is known then
  Nic card;                         // that the kernel sends by; without a name: unknown
  unsigned most_megabits = 0;       // that the card can do; 0: unknown
  std::string gateway;              // empty: none
  std::string other_half;           // the card that is the other half of the port; empty: there is none
  bool is_other_half_used = false;  // it has a link and an address
  std::string peer_card;
  unsigned peer_megabits = 0;  // 0: unknown
  unsigned packet = 0;         // that TCP uses on this way; 0: unknown
  unsigned works = 0;          // the largest packet that came back, at most `packet`; 0: no echo at all
  std::string arrives_by;      // another card, by which the peer's data arrived; empty: by `card`
  std::optional<BetterWay> better;
  WayRate from, to;  // seen from this host
};

}  // namespace spark::fleet
