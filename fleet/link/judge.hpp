// The verdict on a link.
#pragma once

#include <string>
#include <vector>

#include "fleet/link/facts.hpp"

namespace spark::fleet {

struct LinkFinding {
  bool is_fault = false;
  // Faults: "silent", "mtu", "interface", "slow", "half", "stalls". Notes: "cpu", "half", "negotiated".
  std::string kind;
  std::string what, why, fix;
};

// A pure function of the facts.
std::vector<LinkFinding> judge(const LinkFacts& facts);

// Bytes per second that this way could carry: of the slower card, or the sender's limit. 0: unknown, because
// one of the cards does not tell.
double possible_rate(const LinkFacts& facts, const WayRate& way);
// Whether this way moved as much as a link in order does; also if that is unknown.
bool is_fast_enough(const LinkFacts& facts, const WayRate& way);
// Whether the processors, and not the link, set the rate.
bool is_limited_by_cpu(const WayRate& way);

}  // namespace spark::fleet
