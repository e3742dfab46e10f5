// What each user has of a server: connections now, and requests in the long run. Root has no limit of its
// own, and what a user may have leaves room for root.
#pragma once

#include <sys/types.h>

#include <map>

#include "base/clock.hpp"
#include "daemon/api/server.hpp"

namespace spark::api {

class Callers {
 public:
  explicit Callers(const Limits& limits) : limits_(limits) {}

  // False: too many connections already; otherwise leave() follows.
  bool enter(const Caller& caller);
  void leave(const Caller& caller);

  // How long the caller's next request has to wait. After a pause a second's worth of requests waits for
  // nothing.
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
