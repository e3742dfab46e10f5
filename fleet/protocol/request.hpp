// Requests between peers; all use GET:
//   /fleet/v1/node                                    the peer's identity and version
//   /fleet/v1/datasets                                the published copies, with their hashes
//   /fleet/v1/sets/ID[?from=NODE]                     the state of a set on this host
//   /fleet/v1/sets/ID/units/N                         one unit
//   /fleet/v1/walks/ID[?from=NODE]                    the state of a volume's walk on this host
//   /fleet/v1/walks/ID/entries                        the result of the walk, as a manifest
//   /fleet/v1/walks/ID/notes                          see staging::WalkNotes
//   /fleet/v1/walks/ID/folders                        published copy: "plain" if no folder has attributes
//   /fleet/v1/copies/HASH/entries                     the manifest of a published copy with that hash
//   /fleet/v1/link                                    this end of the connection; see LinkEnd
//   /fleet/v1/link/send/BYTES                         that many bytes without a meaning
//   /fleet/v1/link/take/BYTES                         takes as many, which follow the request
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.hpp"
#include "fleet/protocol/owner.hpp"

namespace spark::fleet {

inline constexpr Bytes kMostLinkBytes = 8 * kMiB;  // of one request that measures the link

struct PeerRequest {
  enum class Kind {
    Node,
    Datasets,
    Set,
    Unit,
    Walk,
    WalkEntries,
    WalkNotes,
    WalkFolders,
    CopyEntries,
    Link,
    LinkSend,
    LinkTake
  };
  Kind kind = Kind::Node;
  std::string set{};       // for sets and walks; for CopyEntries the hash
  std::uint64_t unit = 0;  // for Unit
  NodeId from = 0;         // for Set and Walk: a host that stages it; 0: the caller only inspects
  Bytes bytes = 0;         // for LinkSend and LinkTake: 1 to kMostLinkBytes
  bool operator==(const PeerRequest&) const = default;
};

// No value for any other target.
std::optional<PeerRequest> parse_target(std::string_view target);
std::string to_target(const PeerRequest& request);

std::string node_text(NodeId node);  // 16 hexadecimal digits
std::optional<NodeId> parse_node(std::string_view text);

}  // namespace spark::fleet
