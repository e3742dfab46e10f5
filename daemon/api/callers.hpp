// The use of a server by each user: current connections, and requests over time. Root has no limit of its
// own, and the other users' limits leave room for root.
#pragma once

#include <sys/types.h>

#include <map>

#include "base/clock.hpp"
#include "daemon/api/server.hpp"

namespace spark::api {

class Callers {
 public:
  explicit Callers(const Limits& limits) : limits_(limits) {}

  // False: too many connections already. Otherwise the caller must call leave() later.
  bool enter(const Caller& caller);
  void leave(const Caller& caller);

  // Delay before the caller's next request. After a pause, a second's worth of requests is not delayed.
  SteadyTime::duration until_turn(const Caller& caller, SteadyTime now);

 private:
  struct User {
    std::size_t connections = 0;
    SteadyTime next_turn{};
  };

  Limits limits_;
  std::map<uid_t, User> users_;
};

}  // namespace spark::api
