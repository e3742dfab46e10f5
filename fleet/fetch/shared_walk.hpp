// Shares one walk of a volume among all hosts that stage the same state of it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fleet/fetch/peer.hpp"
#include "fleet/fetch/presence.hpp"
#include "fleet/schedule/schedule.hpp"
#include "staging/copy/exchange.hpp"

namespace spark::fleet {

// Used once. The walk is offered to peers while this object exists.
class SharedWalk {
 public:
  // `walk` is the walk's name between hosts; see SetNaming, without files.
  SharedWalk(NodeId self, std::string walk, std::filesystem::path boards,
             std::vector<std::unique_ptr<Peer>>& peers, SetState::Reads reads)
      : self_(self), walk_(std::move(walk)), boards_(std::move(boards)), peers_(peers), reads_(reads) {}

  // Returns a peer's walk, or else the result of `own`. Errors come from `own` alone.
  Result<staging::Walked> get(const staging::Exchange::Walk& own);

 private:
  NodeId self_;
  std::string walk_;
  std::filesystem::path boards_;
  std::vector<std::unique_ptr<Peer>>& peers_;
  SetState::Reads reads_;  // how this host reads the volume
  std::unique_ptr<Presence> presence_;
  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::unique_ptr<Schedule> schedule_;
  std::size_t awaited_ = 0;  // peers to wait for until their first answer or failure, before choosing a host
                             // for the walk
  std::atomic<bool> is_over_{false};
  Interrupt over_;  // set together with it, for requests under way

  void watch(std::size_t index);
  void end();
  Result<staging::Walked> decide(const staging::Exchange::Walk& own);
  std::optional<Choice> next();
  Result<staging::Walked> from_peer(std::size_t index);
  void offer(const staging::Walked& walked);
};

}  // namespace spark::fleet
