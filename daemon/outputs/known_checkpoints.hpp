// Remembers the flushing and sending of an output's checkpoints, and the newest one seen on its volume;
// recorded in the state folder.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
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
  const Changes& flushed() const { return known_.flushed; }
  const Changes& sent() const { return known_.sent; }
  // Whether none that was seen on the volume since this host's boot is newer. Before the boot, another host
  // may have had the volume unnoticed.
  bool is_newest_known(const LocalCheckpoint& local) const;

  // Reads the record, once; a failure is logged, and the next call tries again. Until then nothing is
  // remembered or saved, which would replace the record.
  asio::awaitable<void> load();
  bool has_loaded() const { return has_loaded_; }
  // Keeps the entries of these local checkpoints and drops the others. `published` is null while the volume
  // can't be listed. Saves.
  asio::awaitable<void> remember(const std::vector<LocalCheckpoint>& local,
                                 const std::vector<PublishedCheckpoint>* published);
  void mark_sent(const std::string& checkpoint, std::int64_t changed_ns);
  // The list of the volume, newest first; until it is forgotten again, because another host may write there
  // unnoticed.
  void note_published(const std::vector<PublishedCheckpoint>& published);
  void forget_published() { known_.newest_published.reset(); }
  // Records changes, if there are any; a failure is logged, and the next call tries again.
  asio::awaitable<void> save();

 private:
  struct Known {
    Changes flushed, sent;
    std::optional<PublishedCheckpoint> newest_published;  // without a name: none is there
    bool operator==(const Known&) const = default;
  };
  json::object published_to_json() const;
  std::optional<PublishedCheckpoint> published_from(const json::object* object) const;
  std::string subject() const;
  std::string file() const;

  const Context& context_;
  const config::Output& output_;
  Known known_, recorded_;
  bool has_loaded_ = false;
};

}  // namespace spark::outputs
