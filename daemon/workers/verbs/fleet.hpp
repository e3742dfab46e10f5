// The fleet in a request, for workers that exchange data.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "fleet/fetch/peer_exchange.hpp"
#include "fleet/transport/name_service.hpp"

namespace spark::workers {

// This host and the others, from "fleet" of a request.
struct FleetMembers {
  fleet::NodeId self = 0;
  std::vector<fleet::Endpoint> listen;  // at least one
  std::shared_ptr<fleet::Security> security;
  std::filesystem::path key_file;         // of the key in `security`
  std::vector<fleet::PeerAddress> peers;  // without this host, after use_addresses()
  std::optional<fleet::Endpoint> dns;     // a name that resolves to the addresses of all hosts
  std::vector<std::string> nodes;         // of a job: host names, which lead to peers as well
};
Result<FleetMembers> fleet_members_of(const json::object& fleet);

inline constexpr std::chrono::milliseconds kResolving{2'000};  // all names, before the first byte

// The addresses of all names in the configuration; of those that are not known, by `names`. None: not found.
fleet::FoundNames addresses_of(const FleetMembers& members, fleet::NameService& names,
                               std::chrono::milliseconds limit, fleet::FoundNames known = {});

// Replaces the peers' names by these addresses, leaves out this host, and adds the hosts of `dns`. Other code
// asks no name service for a peer.
void use_addresses(FleetMembers& members, const fleet::FoundNames& found);

// Adds the hosts that these names lead to, at the port of this host. Waits for a name service for two seconds
// at most. Returns the nodes that it has found; those of a peer already known are not looked up. The peers
// have addresses already.
fleet::FoundNames add_nodes(FleetMembers& members, const std::vector<std::string>& nodes,
                            fleet::NameService& names);

// The folder of the boards, in the state folder.
std::filesystem::path boards_in(const std::filesystem::path& state_dir);

// What the process that serves peers knows of them. It reports this to the staging workers by a file beside
// the boards, which is valid for some seconds.
struct PeerNotes {
  fleet::FoundNames found;       // addresses of the configuration's names
  std::set<std::string> silent;  // peers that did not answer
};
// `peers`: see Neighbours::ask().
void note_peers(const std::filesystem::path& boards, const fleet::FoundNames& found,
                const json::array& peers);
PeerNotes noted_peers(const std::filesystem::path& boards);

// The nodes of the jobs that staged here, reported to the process that serves peers, which answers their
// addresses.
void note_nodes(const std::filesystem::path& boards, const fleet::FoundNames& nodes);
bool is_noted_node(const std::filesystem::path& boards, const std::string& address);

// From "fleet" in the request. Null if there is no exchange; `warning` then has the reason of a failure.
// Staging does not depend on peers.
std::unique_ptr<fleet::PeerExchange> exchange_of(const json::object& request, const std::string& dataset,
                                                 std::string& warning);

}  // namespace spark::workers
