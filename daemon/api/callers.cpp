#include "daemon/api/callers.hpp"

#include <algorithm>

namespace spark::api {

namespace {

constexpr std::size_t kMostKept = 1024;  // before idle clients are forgotten
constexpr std::chrono::seconds kSaved{1};
constexpr std::chrono::milliseconds kBetweenLooks{100};  // whether the client has read

}  // namespace

bool Callers::enter(const Caller& caller) {
  return caller.may_change || connections_.enter(client_of(caller));
}

void Callers::leave(const Caller& caller) {
  if (!caller.may_change) connections_.leave(client_of(caller));
}

SteadyTime::duration Callers::until_turn(const Caller& caller, SteadyTime now) {
  if (caller.may_change) return {};
  if (uses_.size() > kMostKept) {
    std::erase_if(uses_, [&](const auto& one) {
      const Use& use = one.second;
      return use.unread == 0 && std::max(use.next_turn, use.paid_at) <= now - kSaved;
    });
  }
  SteadyTime& next_turn = uses_[client_of(caller)].next_turn;
  const auto one = SteadyTime::duration(kSaved) / limits_.user_requests_per_second;
  next_turn = std::max(next_turn, now - kSaved) + one;
  return std::max(SteadyTime::duration{}, next_turn - now);
}

void Callers::give_turn_back(const Caller& caller) {
  if (!caller.may_change)
    uses_[client_of(caller)].next_turn -= SteadyTime::duration(kSaved) / limits_.user_requests_per_second;
}

SteadyTime::duration Callers::until_room(const Caller& caller, SteadyTime now) {
  if (caller.may_change) return {};
  Use& use = uses_[client_of(caller)];
  if (use.paid_at > now) return use.paid_at - now;
  if (use.unread >= limits_.user_answers) return kBetweenLooks;
  use.unread += kExpected;
  return {};
}

void Callers::keep_answer(const Caller& caller, std::size_t bytes, SteadyTime now) {
  if (caller.may_change) return;
  Use& use = uses_[client_of(caller)];
  use.unread += bytes - kExpected;
  const auto one = SteadyTime::duration(kSaved) / limits_.user_requests_per_second;
  use.paid_at = std::max(use.paid_at, now) + one * (bytes / limits_.answer_per_request);
}

void Callers::drop_answer(const Caller& caller, std::size_t bytes) {
  if (!caller.may_change) uses_[client_of(caller)].unread -= bytes;
}

}  // namespace spark::api
