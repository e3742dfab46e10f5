#include "daemon/api/callers.hpp"

#include <algorithm>

namespace spark::api {

namespace {

constexpr std::size_t kMostKept = 1024;  // before idle clients are forgotten
constexpr std::chrono::seconds kSaved{1};

}  // namespace

bool Callers::enter(const Caller& caller) {
  return caller.may_change || connections_.enter(client_of(caller));
}

void Callers::leave(const Caller& caller) {
  if (!caller.may_change) connections_.leave(client_of(caller));
}

SteadyTime::duration Callers::until_turn(const Caller& caller, SteadyTime now) {
  if (caller.may_change) return {};
  if (next_turns_.size() > kMostKept)
    std::erase_if(next_turns_, [&](const auto& one) { return one.second <= now - kSaved; });
  SteadyTime& next_turn = next_turns_[client_of(caller)];
  const auto one = SteadyTime::duration(kSaved) / limits_.user_requests_per_second;
  next_turn = std::max(next_turn, now - kSaved) + one;
  return std::max(SteadyTime::duration{}, next_turn - now);
}

}  // namespace spark::api
