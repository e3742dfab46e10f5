// The other hosts of the fleet, and queries to them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "daemon/workers/verbs/fleet.hpp"
#include "fleet/fetch/peer.hpp"
#include "fleet/transport/name_service.hpp"

namespace spark::workers {

// Bytes per second of this host's network interface; 0 if the kernel does not know.
Bytes link_rate(const std::string& interface);

class Neighbours {
 public:
  Neighbours(FleetMembers members, fleet::Resolve resolve);

  // Whether this is the address of a peer, as of the last question. Never waits. Any thread.
  bool has(const std::string& address);
  // Queries all peers in parallel, so that a silent one does not delay the others:
  // [{"name", "answers", "address", "version", "interface", "link_bytes_per_second", "reason"}…]
  json::array ask();
  // The same, with the published copies of each peer that answers: "datasets": see PublishedCopies::list
  json::array ask_with_datasets();
  // The addresses that the fleet's name leads to, as of the last question.
  const std::vector<std::string>& found() const { return found_; }

 private:
  const FleetMembers members_;  // of the configuration
  const fleet::Resolve resolve_;
  std::vector<std::string> found_;
  std::vector<fleet::PeerAddress> addresses_;
  std::vector<std::unique_ptr<fleet::Peer>> peers_;
  std::map<std::string, std::vector<std::string>> last_;  // the addresses of each peer's names, as last found
  std::mutex mutex_;
  std::set<std::string> allowed_;

  void look_up_members();
  void use(const FleetMembers& members);
  void resolve_peers();
  json::array ask_each(bool with_datasets);
};

}  // namespace spark::workers
