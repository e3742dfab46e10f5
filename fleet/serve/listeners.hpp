// The sockets on which a server awaits its peers.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/result.hpp"
#include "fleet/transport/sockets.hpp"

namespace spark::fleet {

// Used by one thread, except trouble(). In a ring of hosts an interface has no address while the host at its
// other end is off: the peers at the other addresses are served all the same.
class Listeners {
 public:
  explicit Listeners(std::vector<Endpoint> at) : missing_(std::move(at)) {}

  // An error if this host has none of the addresses, or if one is in use.
  Result<> open();
  // Those that were missing, once a second.
  void open_missing(SteadyTime now);
  // Not only their descriptors: a thread that hangs in the kernel keeps those, and with them the addresses.
  void close();

  const std::vector<UniqueFd>& sockets() const { return sockets_; }
  // Where nothing is served, and why; empty: served everywhere. Thread-safe.
  std::string trouble() const;

 private:
  std::vector<Endpoint> missing_;
  std::vector<UniqueFd> sockets_;
  SteadyTime tried_at_{};
  mutable std::mutex mutex_;  // guards trouble_
  std::string trouble_;

  std::vector<Error> try_missing();
};

}  // namespace spark::fleet
