// The use of a server by each user: current connections, requests over time, and answers in memory. Root has
// no limits.
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
  void give_turn_back(const Caller& caller);  // the client has left before it

  // Zero: there is room for one more answer, which is counted from now on as kExpected bytes. Otherwise the
  // delay before the next try: the caller has not read earlier answers, or large ones used up the caller's
  // time.
  SteadyTime::duration until_room(const Caller& caller, SteadyTime now);
  // The size is known by now.
  void keep_answer(const Caller& caller, std::size_t bytes, SteadyTime now);
  void drop_answer(const Caller& caller, std::size_t bytes);  // it was sent, or is not kept
  static constexpr std::size_t kExpected = 1 << 20;

 private:
  using Client = std::pair<uid_t, std::string>;  // user or address

  struct Use {
    SteadyTime next_turn, paid_at;  // paid_at: when the large answers until now are paid for
    std::size_t unread = 0;         // bytes
  };

  static Client client_of(const Caller& caller) { return {caller.uid, caller.address}; }

  Limits limits_;
  Shares<Client> connections_;
  std::map<Client, Use> uses_;
};

}  // namespace spark::api
