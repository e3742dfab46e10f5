// The other hosts of the fleet, and queries to them.
#pragma once

#include <chrono>
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

// What compare_datasets() needs of a peer's list: at most so many rows, without long names.
json::array compared_rows(const json::array& datasets, std::size_t most);

class Neighbours {
 public:
  // Looks up names with `names`; here for `limit` at most: peers whose names take longer are unknown at
  // first.
  Neighbours(FleetMembers members, fleet::NameService& names, std::chrono::milliseconds limit = {});

  // Whether this is the address of a peer, as of the last question. Never waits. Any thread, also the next.
  bool has(const std::string& address) { return !name_of(address).empty(); }
  std::string name_of(const std::string& address);  // empty: none
  // Queries all peers in parallel, so that a silent one does not delay the others:
  // [{"name", "answers", "address", "version", "interface", "link_bytes_per_second", "reason"}…]
  // Datasets: with the published copies of each peer that answers: "datasets": see PublishedCopies::list
  enum class About { Hosts, Datasets };
  json::array ask(About what = About::Hosts);
  // The addresses of all names in the configuration, as of the last question. None: not found so far.
  const fleet::FoundNames& found() const { return found_; }

 private:
  const FleetMembers members_;  // of the configuration
  fleet::NameService& names_;
  fleet::FoundNames found_;
  std::vector<std::unique_ptr<fleet::Peer>> peers_;
  std::mutex mutex_;
  std::map<std::string, std::string> allowed_;  // names by address

  void look_up(std::chrono::milliseconds limit);
};

}  // namespace spark::workers
