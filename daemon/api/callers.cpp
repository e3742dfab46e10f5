#include "daemon/api/callers.hpp"

#include <algorithm>

namespace spark::api {

bool Callers::enter(const Caller& caller) {
  User& user = users_[caller.uid];
  if (!caller.may_change && user.connections >= limits_.user_connections) return false;
  ++user.connections;
  return true;
}

void Callers::leave(const Caller& caller) {
  --users_[caller.uid].connections;
}

SteadyTime::duration Callers::until_turn(const Caller& caller, SteadyTime now) {
  if (caller.may_change) return {};
  User& user = users_[caller.uid];
  constexpr std::chrono::seconds kSaved{1};
  const auto one = SteadyTime::duration(kSaved) / limits_.user_requests_per_second;
  user.next_turn = std::max(user.next_turn, now - kSaved) + one;
  return std::max(SteadyTime::duration{}, user.next_turn - now);
}

}  // namespace spark::api
