// The order of work that shares a volume, and of work that a user can start without end. One turn for each
// user before the second of any. Root has the next turn, unless it had the last one and users wait.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "daemon/event.hpp"

namespace spark::workers {

namespace asio = boost::asio;

class UserTurns {
 public:
  struct Claim {
    std::string queue;  // the volume, or what else is shared
    uid_t user = 0;
    std::uint64_t job = 0;   // one claim each
    std::size_t places = 1;  // turns of that queue at once
  };

  explicit UserTurns(asio::any_io_executor executor) : changed_(std::move(executor)) {}

  // Waits for a turn, or until the claim is given back. Calls `on_wait` with the number of a job that has
  // one, whenever that changes.
  asio::awaitable<void> take(Claim claim, std::function<void(std::uint64_t)> on_wait);
  // The turn, or the place of a claim that waits. No effect if it has neither.
  void give_back(const Claim& claim);
  bool has(const Claim& claim) const;
  bool is_waited_for(const Claim& claim) const;  // by another one

 private:
  struct Waiting {
    uid_t user = 0;
    std::uint64_t number = 0;
  };
  struct Queue {
    std::set<std::uint64_t> holders;            // jobs
    std::map<std::uint64_t, Waiting> waiting;   // by job
    std::map<uid_t, std::uint64_t> last_turns;  // by user
    std::uint64_t turns = 0, claims = 0;
  };

  static std::uint64_t rank(const Queue& queue, uid_t user);
  void hand_over(const std::string& name, std::size_t places);

  std::map<std::string, Queue> queues_;  // those that are in use
  Event changed_;
};

}  // namespace spark::workers
