#include "fleet/link/report.hpp"

#include <algorithm>
#include <cmath>

namespace spark::fleet {
namespace {

json::value rate_of(const WayRate& way) {
  return way.bytes_per_second > 0 ? json::value(std::llround(way.bytes_per_second)) : json::value();
}

}  // namespace

json::object to_json(const LinkFacts& facts, const std::vector<LinkFinding>& findings) {
  json::array faults;
  for (const LinkFinding& finding : findings)
    if (finding.is_fault) faults.emplace_back(finding.kind);
  return {{"peer", facts.peer},
          {"address", or_null(facts.address)},
          {"interface", or_null(facts.card.name)},
          {"megabits", or_null(facts.card.megabits)},
          {"mtu", or_null(facts.card.mtu)},
          {"packet", or_null(facts.works)},
          {"peer_interface", or_null(facts.peer_card)},
          {"peer_megabits", or_null(facts.peer_megabits)},
          {"received_bytes_per_second", rate_of(facts.from)},
          {"sent_bytes_per_second", rate_of(facts.to)},
          {"own_busy", std::max(facts.from.own_busy, facts.to.own_busy)},
          {"peer_busy", std::max(facts.from.peer_busy, facts.to.peer_busy)},
          {"faults", std::move(faults)}};
}

}  // namespace spark::fleet
