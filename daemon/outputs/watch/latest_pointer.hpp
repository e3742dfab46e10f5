// The pointer `latest` on the volume, which each sending moves. A sending that is interrupted right after it
// has published a checkpoint leaves it where it was, and so does a person who deletes the checkpoint that it
// names.
#pragma once

#include <sys/types.h>

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "daemon/outputs/context.hpp"
#include "daemon/outputs/watch/checkpoint_plan.hpp"

namespace spark::outputs {

class LatestPointer {
 public:
  // Both outlive it.
  LatestPointer(const Context& context, const config::Output& output) : context_(context), output_(output) {}

  // Moves it if it does not name the highest one, `now` being its name, with the rights of `owner`. If that
  // does not help, the next attempt is a minute later.
  asio::awaitable<void> correct(const std::vector<PublishedCheckpoint>& published, const std::string& now,
                                uid_t owner);

 private:
  const Context& context_;
  const config::Output& output_;
  SteadyTime next_{};
};

}  // namespace spark::outputs
