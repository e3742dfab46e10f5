#include "daemon/workers/user_turns.hpp"

#include <algorithm>

namespace spark::workers {

asio::awaitable<void> UserTurns::take(Claim claim, std::function<void(std::uint64_t)> on_wait) {
  Queue& joined = queues_[claim.queue];
  joined.waiting[claim.job] = {claim.user, ++joined.claims};
  hand_over(claim.queue, claim.places);
  for (std::uint64_t shown = 0;;) {
    const auto queue = queues_.find(claim.queue);
    if (queue == queues_.end() || !queue->second.waiting.contains(claim.job)) co_return;
    const std::uint64_t first = *queue->second.holders.begin();
    if (shown != first) on_wait(shown = first);
    co_await changed_.wait();
  }
}

void UserTurns::give_back(const Claim& claim) {
  const auto queue = queues_.find(claim.queue);
  if (queue == queues_.end()) return;
  queue->second.waiting.erase(claim.job);
  queue->second.holders.erase(claim.job);
  hand_over(claim.queue, claim.places);
  changed_.notify();
}

bool UserTurns::has(const Claim& claim) const {
  const auto queue = queues_.find(claim.queue);
  return queue != queues_.end() && queue->second.holders.contains(claim.job);
}

bool UserTurns::is_waited_for(const Claim& claim) const {
  const auto queue = queues_.find(claim.queue);
  return queue != queues_.end() && !queue->second.waiting.empty();
}

// The lowest goes first.
std::uint64_t UserTurns::rank(const Queue& queue, uid_t user) {
  const auto found = queue.last_turns.find(user);
  const std::uint64_t last = found == queue.last_turns.end() ? 0 : found->second;
  const bool was_last = last != 0 && last == queue.turns;
  return user == 0 && !was_last ? 0 : last + 1;
}

void UserTurns::hand_over(const std::string& name, std::size_t places) {
  Queue& queue = queues_[name];
  while (queue.holders.size() < places && !queue.waiting.empty()) {
    const auto next = std::ranges::min_element(queue.waiting, {}, [&](const auto& one) {
      return std::pair(rank(queue, one.second.user), one.second.number);
    });
    queue.last_turns[next->second.user] = ++queue.turns;
    queue.holders.insert(next->first);
    queue.waiting.erase(next);
    changed_.notify();
  }
  if (queue.holders.empty() && queue.waiting.empty()) queues_.erase(name);
}

}  // namespace spark::workers
