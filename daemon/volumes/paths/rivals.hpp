// Another target may offer a subsystem with the same NQN. The kernel treats both as one, and of two
// namespaces with the same number it shows the one that came first. The volume's controllers are those at an
// address of its own target; the strangers are at other addresses.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "daemon/volumes/context.hpp"

namespace spark::volumes {

class Rivals {
 public:
  explicit Rivals(VolumeContext& volume);

  // Strangers are connected.
  bool are_there() const;
  // "nvme3 at 10.0.0.9:4420 (target spare)"
  std::string names() const;
  // Refused if a controller of another target leads to the volume's namespace. A stranger that is not live,
  // such as one at an address that the target has given up, matters only if the target's own controllers are
  // connected and do not show the namespace. A stranger at a configured target's address always matters: if
  // the two disks had the same identity, as copies have, its I/O would continue over this volume's
  // connection.
  Result<> check_none() const;

  // The volume's place, once its target's controllers are known. Unavailable if they can't be determined now.
  asio::awaitable<Result<Place>> find_place();
  void learn_from(const nvmetcp::DiscoveryLog& log);
  // Records the addresses of the volume's controllers that the configuration does not list: after a restart
  // the volume recognizes these controllers without a name service, and after its target has moved.
  asio::awaitable<void> remember();
  // If a controller has appeared at an unknown address, asks the target once whether the address is its own.
  asio::awaitable<void> look();
  bool were_looked_at() const { return !known_.empty(); }

 private:
  void recall();
  // Resolves the portals' host names; only if a stranger might be at one of the addresses.
  asio::awaitable<bool> learn_names();
  // The target may have more addresses than the configuration lists: they are in its own discovery log.
  asio::awaitable<void> learn_offers();

  VolumeContext& volume_;
  std::vector<std::string> known_;  // strangers at the time of the last query to the target
  json::object remembered_;
  SteadyTime next_record_{};  // after a failure
};

}  // namespace spark::volumes
