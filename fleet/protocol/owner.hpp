// Which host reads which unit from the source: rendezvous hashing. When a host comes or goes, only the units
// that it owns change hands.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace spark::fleet {

// A host as the protocol names it: made from its NQN and the address that it listens on, so that hosts that
// were cloned are still told apart.
using NodeId = std::uint64_t;
NodeId node_id(std::string_view host_nqn, std::string_view listen);

std::uint64_t weight(NodeId node, std::uint64_t unit);

// The node with the highest weight; `nodes` is not empty.
NodeId owner_of(std::uint64_t unit, std::span<const NodeId> nodes);

// How many of `others` come before `node` for this unit; 0: it is the owner.
std::size_t rank_of(NodeId node, std::uint64_t unit, std::span<const NodeId> others);

}  // namespace spark::fleet
