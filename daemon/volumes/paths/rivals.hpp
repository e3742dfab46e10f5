// Another target may offer a subsystem of the same NQN, and the kernel takes the two for one: of two
// namespaces with one number it shows the one that came first. The volume's controllers are those at an
// address of its own target; the strangers are at others.
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
  // Refused: a controller of another target leads to the volume's namespace. One that is not live, as an
  // address leaves behind that the target has no more, is in the way only where ours is connected and does
  // not show it; one of a target of the configuration always is, as its I/O would go on over our connection
  // if the two disks had one identity, as copies have.
  Result<> check_none() const;

  // What is mounted, once it is known which controllers are the target's. Unavailable: that can't be told
  // now.
  asio::awaitable<Result<Place>> find_place();
  void learn_from(const nvmetcp::DiscoveryLog& log);
  // A controller has come that is at no address known so far: the target is asked once whether it is its own.
  asio::awaitable<void> look();
  bool were_looked_at() const { return !known_.empty(); }

 private:
  // Which addresses a host name leads to; asked only where a controller is there that may be at one of them.
  asio::awaitable<bool> learn_names();
  // The target may have more addresses than the configuration names: its own discovery log says so.
  asio::awaitable<void> learn_offers();

  VolumeContext& volume_;
  std::vector<std::string> known_;  // controllers that the target was asked about
};

}  // namespace spark::volumes
