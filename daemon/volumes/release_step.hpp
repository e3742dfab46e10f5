// How a volume leaves this host, the same for `volumes down`, a reload and `spark-staged release`: what is
// mounted at its mount point, is it the volume's own, unmount it; then give back the reservation; then
// disconnect.
#pragma once

#include <string>
#include <vector>

#include "daemon/config/model.hpp"
#include "daemon/volumes/seams/seams.hpp"

namespace spark::volumes {

struct Released {
  Change change = Change::Done;  // AlreadyThere: the volume was not mounted
  std::string foreign;           // a sentence: what is mounted there instead, and was left alone
  bool gave_back = false;        // a reservation
  std::string still_reserved;    // a sentence: why its reservation was not given back; empty: nothing to say
};

// Refused, and nothing is changed: in use, something is mounted on top, or its device is mounted elsewhere
// too. Only a dead mount is ever detached.
asio::awaitable<Result<Released>> release_mount(const Seams& seams, const config::Volume& volume);

// A reservation of an exclusive volume, once nothing of it is mounted. A target that can't be asked keeps it
// for this host.
struct GivenBack {
  bool gave_back = false;
  std::string still_reserved;  // as above
};
asio::awaitable<GivenBack> give_back_reservation(const Seams& seams, const config::Volume& volume);

// Whether the volume is fenced by a reservation where its namespace offers one.
bool wants_reservation(const config::Volume& volume);

// Every controller of the subsystem that this host made, unless another program keeps it. Gives the names of
// those that went, and the first failure after all were tried.
struct Disconnected {
  std::vector<std::string> controllers;
  Result<> outcome;
};
asio::awaitable<Disconnected> disconnect_subsystem(const Seams& seams, std::string subsystem,
                                                   nvmetcp::Users users);

}  // namespace spark::volumes
