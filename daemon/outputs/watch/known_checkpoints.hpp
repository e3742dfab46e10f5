// Remembers the flushing and sending of an output's checkpoints, recorded in the state folder, and since when
// they are as they are.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/event.hpp"
#include "daemon/outputs/context.hpp"
#include "daemon/outputs/watch/checkpoint_plan.hpp"
#include "daemon/outputs/watch/whole_checkpoint.hpp"

namespace spark::outputs {

class KnownCheckpoints {
 public:
  // Both outlive it.
  KnownCheckpoints(const Context& context, const config::Output& output);

  // The state of each checkpoint (LocalCheckpoint::written) when it was flushed. In records of version 0.2.0,
  // here and below, its newest change.
  const Changes& flushed() const { return known_.flushed; }
  // The state of each checkpoint when it was sent.
  const Changes& sent() const { return known_.sent; }
  // The state of each checkpoint that has been as it is for a while, by the clock that never jumps.
  Changes unchanged() const;
  // The state of each checkpoint that stays unproven, or may be from before the boot: it was in the future at
  // the first look. Its times may say otherwise once the clock is set.
  const Changes& unproven() const { return known_.unproven; }

  struct Folder {
    std::string mount{};  // where its file system is mounted; empty means unknown
    std::optional<uid_t> owner{};
    bool operator==(const Folder&) const = default;
  };
  // Whether the record is of another file system than the folder is on now, and has a checkpoint that is
  // neither here nor was sent: that file system is not mounted yet. Where it is mounted; empty means no.
  std::string unmounted(const Folder& now, const std::vector<LocalCheckpoint>& local);

  // Of the folder when it was seen last, also before the daemon was restarted.
  std::optional<uid_t> owner() const;
  // Of the record.
  std::string file() const;
  // Reads the record, once; a failure is logged, and the next call tries again. Until then nothing is
  // remembered or saved, which would replace the record.
  asio::awaitable<void> load();
  bool has_loaded() const { return has_loaded_; }
  // Keeps the entries of these local checkpoints and drops the others. `published` is null while the volume
  // can't be listed; a copy that was not known to be sent has `written`, unless it is not whole. Saves. Does
  // nothing for a look that began before the last one.
  asio::awaitable<void> remember(SteadyTime begun, const std::vector<LocalCheckpoint>& local,
                                 const std::vector<PublishedCheckpoint>* published);
  void mark_sent(const std::string& checkpoint, std::int64_t written);
  // This host's shard of it is on the volume, which does not publish it yet.
  void mark_shard_sent(const std::string& checkpoint, std::int64_t written);
  // One that was complete and has lost files since, as in an interrupted deletion by the job, is not
  // complete.
  void mark_remnants(std::vector<LocalCheckpoint>& local) const;
  // One that was on the drive, and is above the published ones or not there: null if they can't be listed.
  // Empty if there is none.
  std::string unsent_above(const std::vector<PublishedCheckpoint>* published) const;
  // Records changes, if there are any; a failure is logged, and the next call tries again.
  asio::awaitable<void> save();

 private:
  struct Known {
    Changes flushed, sent, unproven;
    Changes shards{};  // see mark_shard_sent
    std::map<std::string, WholeCheckpoint> whole{};
    Folder folder{};     // of `flushed`
    std::string path{};  // of the folder; empty means unknown
    bool operator==(const Known&) const = default;
  };
  bool was_sent(const std::string& name, std::int64_t written) const;
  static std::map<std::string, WholeCheckpoint> whole_from_json(const json::object* object);
  std::string subject() const;
  bool is_of_this_folder() const;  // the record: `path` may have been changed in the configuration

  const Context& context_;
  const config::Output& output_;
  Known known_, recorded_;
  struct Since {
    std::int64_t written = 0;
    SteadyTime time{};
    bool is_unproven = false;
  };
  const WholeCheckpoint* whole_of(const LocalCheckpoint& one) const;  // null: not known
  Changes converted(Changes recorded, const std::vector<LocalCheckpoint>& local) const;
  std::map<std::string, Since> since_;  // by name
  std::optional<SteadyTime> looked_;    // the beginning of the last look
  Folder folder_;                       // as it is now
  bool has_loaded_ = false;
  bool is_saving_ = false;
  Event saved_;
};

}  // namespace spark::outputs
