// Remembers the flushing and sending of an output's checkpoints; recorded in the state folder.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "daemon/outputs/checkpoint_plan.hpp"
#include "daemon/outputs/context.hpp"

namespace spark::outputs {

class KnownCheckpoints {
 public:
  // Both outlive it.
  KnownCheckpoints(const Context& context, const config::Output& output);

  // The newest change of each checkpoint when it was flushed, and when it was sent.
  const Changes& flushed() const { return changes_.flushed; }
  const Changes& sent() const { return changes_.sent; }

  // Reads the record, once; a failure is logged, and the next call tries again.
  asio::awaitable<void> load();
  // Keeps the entries of these local checkpoints and drops the others. `published` is null while the volume
  // can't be listed. Records changes; a failure is logged, and the next call tries again.
  asio::awaitable<void> remember(const std::vector<LocalCheckpoint>& local,
                                 const std::vector<PublishedCheckpoint>* published);
  void mark_sent(const std::string& checkpoint, std::int64_t changed_ns);

 private:
  struct ChangesByEvent {
    Changes flushed, sent;
    bool operator==(const ChangesByEvent&) const = default;
  };
  asio::awaitable<void> save();
  std::string subject() const;
  std::string file() const;

  const Context& context_;
  const config::Output& output_;
  ChangesByEvent changes_, recorded_;
  bool has_loaded_ = false;
};

}  // namespace spark::outputs
