// Requests between peers; all use GET:
//   /fleet/v1/node                                    the peer's identity and version
//   /fleet/v1/datasets                                the published copies, with their hashes
//   /fleet/v1/sets/ID[?from=NODE]                     the state of a set on this host
//   /fleet/v1/sets/ID/units/N                         one unit
//   /fleet/v1/walks/ID[?from=NODE]                    the state of a volume's walk on this host
//   /fleet/v1/walks/ID/entries                        the result of the walk, as a manifest
//   /fleet/v1/walks/ID/notes                          see staging::WalkNotes
//   /fleet/v1/walks/ID/folders                        published copy: "plain" if no folder has attributes
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
  std::string set;         // all kinds except Node and Datasets
  std::uint64_t unit = 0;  // for Unit
  NodeId from = 0;         // for Set and Walk: a host that stages it; 0: the caller only inspects
  bool operator==(const PeerRequest&) const = default;
};

// No value for any other target.
std::optional<PeerRequest> parse_target(std::string_view target);
std::string to_target(const PeerRequest& request);

std::string node_text(NodeId node);  // 16 hexadecimal digits
std::optional<NodeId> parse_node(std::string_view text);

}  // namespace spark::fleet
