// Shared by the components of one volume: its settings, its state, and its seams.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "daemon/backoff.hpp"
#include "daemon/config/model.hpp"
#include "daemon/timer.hpp"
#include "daemon/volumes/checked_mount.hpp"
#include "daemon/volumes/place.hpp"
#include "daemon/volumes/seams/seams.hpp"
#include "daemon/volumes/status.hpp"
#include "daemon/volumes/timings.hpp"

namespace spark::volumes {

// As what an attempt mounts a volume. It is decided once, since a request may change what is recorded
// meanwhile. Taker: an operator requested a takeover, which is to write it.
enum class Role { Reader, Writer, Taker };

// Results of the attempts so far.
struct Attempts {
  bool was_ready = false;     // since it was last requested up: further work is a recovery
  bool healed_by_us = false;  // this daemon connected or mounted it since it was last ready
  bool failed = false;        // an attempt failed since it was last ready or requested up
  bool reads = false;  // the one in progress mounts what is published here: a request to write it comes after
  bool replaces_outdated = false;  // it was unmounted for a newer state of its content
  std::string
      left_behind{};  // processes with open files on the dead mount that was replaced; empty means none
};

class VolumeContext {
 public:
  VolumeContext(asio::any_io_executor executor, config::Volume settings, std::optional<config::Target> target,
                Seams seams, const Clock& clock, Timings timings,
                std::function<void(State before)> on_change);

  const asio::any_io_executor executor;
  config::Volume settings;
  std::optional<config::Target> target;  // none for NFS
  const Seams seams;
  const Clock& clock;
  const Timings timings;

  Status status;  // each component writes its results here
  CheckedMountPtr& checked = status.checked;
  Attempts attempts;
  Backoff backoff;  // between attempts to bring it up
  bool wanted_up = true, stopped = false;
  bool is_left() const { return stopped || !wanted_up; }  // no step towards ready makes sense any more
  // Keeps the volume alive while background work runs.
  std::function<std::shared_ptr<void>()> keep_alive;

  // Evaluates the mount table and the mount's known state. The record of a mount that is gone ends here.
  Standing look_at_standing();
  Place look_at_mount() { return look_at_standing().place; }

  void set_state(State state, std::string reason = {});
  // During a step or after its failure: a volume that was ready before is recovering, once its dead mount is
  // released.
  State working_state(State first_time);
  void say(State first_time, std::string reason) { set_state(working_state(first_time), std::move(reason)); }

  // The state machine's wait; wake() ends it.
  asio::awaitable<void> sleep(Duration duration);
  // All volumes check at the same moments, in whatever component, so that the host's state is read only once
  // (HostSnapshot).
  Duration until_next(Duration period) const;
  void wake() { sleeping_.cancel(); }

  // Before 6.15, Linux writes an ext4's superblock on unmount, even if the file system was shut down. While
  // its link is down, that write would wait, and arrive after those that another host may have made by then.
  bool writes_superblock(const Standing& standing) const;

  // The mount is gone. Also called after this daemon's own unmounts: the kernel gives its number to the next
  // mount.
  void forget_mount();

 private:
  bool is_broken(const mounts::Mount& mount) const;

  std::function<void(State before)> on_change_;
  Timer sleeping_;
};

// Starts to write all unwritten data of the mounted file system to its device, which may take hours, or for
// ever.
std::shared_ptr<std::optional<Result<>>> start_flush(VolumeContext& volume, OwnMount mount,
                                                     std::function<void()> on_end);
// An exclusive volume that its writer has closed for readers: by its mount, else by the record of its file
// system; see Publication.
bool is_published(const VolumeContext& volume);
// Another host may write it: data is consistent only while the superblock's stamp does not change.
bool is_reader(const VolumeContext& volume);
// A step ended because an operator asked for the opposite.
Error asked_down(const VolumeContext& volume);
// Unavailable while it is being published or made writable.
Result<> check_not_changing(const VolumeContext& volume);
// "namespace 1 of raid5-data"
std::string namespace_name(const VolumeContext& volume);
// Describes a file system with recorded errors, with the next step for an operator: the daemon never repairs.
std::string damaged(const VolumeContext& volume, const std::string& damage);

}  // namespace spark::volumes
