// The other hosts of an output whose checkpoints have shards of several hosts: whether one of them may still
// send its shard, and what this host tells them of its own.
#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/outputs/context.hpp"
#include "daemon/outputs/watch/checkpoint_plan.hpp"
#include "daemon/timer.hpp"

namespace spark::outputs {

class OtherHosts {
 public:
  // Both outlive it.
  OtherHosts(const Context& context, const config::Output& output)
      : context_(context), output_(output), timer_(context.executor) {}

  // Those of which no host has sent anything for some time, or has given a sign that it will.
  void mark_stuck(std::vector<BegunCheckpoint>& begun);

  // These shards others wait for, and this host will send: a sign of each is renewed until another plan.
  void plan(std::vector<std::string> checkpoints, uid_t owner);
  // Gives these signs until stop(), also while a look takes minutes.
  asio::awaitable<void> announce();
  void stop();

  // What `latest` waits for.
  struct Awaited {
    std::string name;         // the highest complete checkpoint here, which is not published
    bool is_sending = false;  // this host
    std::int64_t others_progress = 0;
    bool operator==(const Awaited&) const = default;
  };
  // Whether it goes on waiting. `may_publish`: by the plan. `asked`: when this question began. The silence of
  // other hosts counts from the first question, as they may have come back just now, and from what one did
  // since, as it sends one checkpoint after the other. A sending that fails again and again ends the wait as
  // well.
  bool is_awaited(const Awaited& now, bool may_publish, SteadyTime asked);

 private:
  struct Questions {  // one after the other, of a caller that waits
    SteadyTime last{}, changed{};
    Awaited awaited;
  };

  const Context& context_;
  const config::Output& output_;
  std::map<std::string, std::pair<BegunCheckpoint, SteadyTime>> begun_;  // by name: since when it is so
  std::vector<std::string> planned_;
  uid_t owner_ = 0;
  std::optional<Questions> questions_;
  Timer timer_;
  bool is_stopped_ = false;
};

}  // namespace spark::outputs
