// What the components of one volume share: what it is to be, what is known of it, and its seams.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "daemon/backoff.hpp"
#include "daemon/config/model.hpp"
#include "daemon/volumes/place.hpp"
#include "daemon/volumes/seams/seams.hpp"
#include "daemon/volumes/status.hpp"
#include "daemon/volumes/timings.hpp"

namespace spark::volumes {

// What this daemon knows of the file system that is mounted. A new value for each mount.
struct MountState {
  bool is_known = false;             // its superblock and fence were looked at
  bool is_broken = false;            // the probe found that it has shut down
  bool is_exchanged = false;         // another file system was seen under it
  std::string fence_lost;            // why this host may not write, while the mount is still there
  std::string mmp_node;              // what multi-mount protection called this host at the first probe
  std::uint64_t stamp = 0;           // of the superblock under a reader's mount; 0: not known
  bool is_outdated = false;          // a writer has closed what is mounted here
  bool is_changing_writing = false;  // it is being published, or made writable again
  std::string left_behind;  // who still has files of the dead mount open that it replaced; empty: nobody
  // From when on good reads are believed; max: the link is down, or no read has come back since.
  SteadyTime link_trusted_from{};
};

// How it went so far.
struct Attempts {
  bool was_ready = false;     // since it was last asked up: what is under way now is a recovery
  bool healed_by_us = false;  // connected or mounted since it was last ready
  bool failed = false;        // one, since it was last ready or asked up
};

class VolumeContext {
 public:
  VolumeContext(asio::any_io_executor executor, config::Volume settings, std::optional<config::Target> target,
                Seams seams, const Clock& clock, Timings timings,
                std::function<void(State before)> on_change);

  const asio::any_io_executor executor;
  config::Volume settings;
  std::optional<config::Target> target;  // none: NFS
  const Seams seams;
  const Clock& clock;
  const Timings timings;

  Status status;     // each component writes what it finds out
  MountState mount;  // of what is mounted now
  Attempts attempts;
  Backoff backoff;  // between attempts to bring it up
  bool wanted_up = true, stopped = false;
  // Of the volume: what runs in the background holds it.
  std::function<std::shared_ptr<void>()> keep_alive;

  // Looks at the mount table, and at what is known of the mount.
  Place look_at_mount();
  // The topmost mount at the mount point; none: nothing is mounted there.
  Result<std::optional<mounts::Mount>> top_mount();

  void set_state(State state, std::string reason = {});
  // While a step runs or failed: a volume that was ready before is recovering, once its dead mount gives way.
  State working_state(State first_time);
  void say(State first_time, std::string reason) { set_state(working_state(first_time), std::move(reason)); }

  // The state machine's own waiting; wake() ends it.
  asio::awaitable<void> sleep(Duration duration);
  // All volumes look at the same moments, whatever looks: what they look at is read once then (HostSnapshot).
  Duration until_next(Duration period) const;
  void wake() { sleeping_.cancel(); }

 private:
  bool is_broken(const mounts::Mount& mount);

  std::function<void(State before)> on_change_;
  asio::steady_timer sleeping_;
};

// An exclusive volume whose writer has closed it for its readers; see Publication.
bool is_published(const VolumeContext& volume);
// Another host may write it: what was read is of one state as long as the superblock has one stamp.
bool is_reader(const VolumeContext& volume);
// "namespace 1 of raid5-data"
std::string namespace_name(const VolumeContext& volume);
// A file system with recorded errors, and an operator's way out: the daemon never repairs.
std::string damaged(const VolumeContext& volume, const std::string& damage);

}  // namespace spark::volumes
