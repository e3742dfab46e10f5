// Assigns to each unit the host that reads it from the source, by rendezvous hashing. If a host joins or
// leaves, only the units that it owns change their owner.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace spark::fleet {

// Identifies a host in the protocol. Derived from its NQN and its listening address, so that cloned hosts
// differ.
using NodeId = std::uint64_t;
NodeId node_id(std::string_view host_nqn, std::string_view listen);

std::uint64_t weight(NodeId node, std::uint64_t unit);

// The node with the highest weight; `nodes` must not be empty.
NodeId owner_of(std::uint64_t unit, std::span<const NodeId> nodes);

// The number of `others` that rank before `node` for this unit; 0: it is the owner.
std::size_t rank_of(NodeId node, std::uint64_t unit, std::span<const NodeId> others);

}  // namespace spark::fleet
