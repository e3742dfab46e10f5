// The use of a server by each user: current connections, and requests over time. Root has no limits.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/shares.hpp"
#include "daemon/api/server.hpp"

namespace spark::api {

class Callers {
 public:
  explicit Callers(const Limits& limits)
      : limits_(limits), connections_(limits.connections, limits.user_connections) {}

  // False: the caller has its share of the connections. Otherwise the caller must call leave() later.
  bool enter(const Caller& caller);
  void leave(const Caller& caller);

  // Delay before the caller's next request. After a pause, a second's worth of requests is not delayed.
  SteadyTime::duration until_turn(const Caller& caller, SteadyTime now);

 private:
  using Client = std::pair<uid_t, std::string>;  // user or address

  static Client client_of(const Caller& caller) { return {caller.uid, caller.address}; }

  Limits limits_;
  Shares<Client> connections_;
  std::map<Client, SteadyTime> next_turns_;
};

}  // namespace spark::api
