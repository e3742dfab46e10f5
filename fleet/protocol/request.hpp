// What a peer may ask, by GET alone:
//   /fleet/v1/node                                    who answers, and its version
//   /fleet/v1/datasets                                the published copies, with their hashes
//   /fleet/v1/sets/ID[?from=NODE]                     how much of a set this host has
//   /fleet/v1/sets/ID/units/N                         one unit
//   /fleet/v1/walks/ID[?from=NODE]                    whether this host has walked, or walks, a volume's
//   state /fleet/v1/walks/ID/entries                        what it found, as a manifest
//   /fleet/v1/walks/ID/notes                          see staging::WalkNotes
//   /fleet/v1/walks/ID/folders                        of a published copy: "plain", if no folder has
//   attributes
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fleet/protocol/owner.hpp"

namespace spark::fleet {

struct PeerRequest {
  enum class Kind { Node, Datasets, Set, Unit, Walk, WalkEntries, WalkNotes, WalkFolders };
  Kind kind = Kind::Node;
  std::string set;         // all but Node and Datasets
  std::uint64_t unit = 0;  // Unit
  NodeId from = 0;         // Set, Walk: a host that stages it; 0: one that only looks
  bool operator==(const PeerRequest&) const = default;
};

// No value for anything else.
std::optional<PeerRequest> parse_target(std::string_view target);
std::string to_target(const PeerRequest& request);

std::string node_text(NodeId node);  // 16 hexadecimal digits
std::optional<NodeId> parse_node(std::string_view text);

}  // namespace spark::fleet
