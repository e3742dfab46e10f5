#include "fleet/protocol/owner.hpp"

#include <algorithm>

#include "staging/manifest/hash.hpp"

namespace spark::fleet {
namespace {

// The finaliser of SplitMix64: each input bit changes half of the output bits on average.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

}  // namespace

NodeId node_id(std::string_view host_nqn, std::string_view listen) {
  staging::Hasher hasher;
  hasher.add(host_nqn);
  hasher.add("\n");
  hasher.add(listen);
  return hasher.digest().low;
}

std::uint64_t weight(NodeId node, std::uint64_t unit) {
  return mix(node ^ mix(unit));
}

NodeId owner_of(std::uint64_t unit, std::span<const NodeId> nodes) {
  return *std::ranges::max_element(nodes, {}, [unit](NodeId node) { return weight(node, unit); });
}

std::size_t rank_of(NodeId node, std::uint64_t unit, std::span<const NodeId> others) {
  const std::uint64_t mine = weight(node, unit);
  return static_cast<std::size_t>(
      std::ranges::count_if(others, [&](NodeId other) { return weight(other, unit) > mine; }));
}

}  // namespace spark::fleet
