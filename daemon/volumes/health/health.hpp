// A mounted volume's health: its mount, its link, and whether its device completes I/O.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>

#include "daemon/volumes/context.hpp"
#include "daemon/volumes/fence/fence.hpp"
#include "daemon/volumes/paths/paths.hpp"
#include "daemon/volumes/publication/publication.hpp"

namespace spark::volumes {

// The result of one check. Silent: I/O waits. Lost: all access to the mount fails, or the mount is gone.
// Fenced: this host may no longer write to it. Exchanged: the device contains another file system than the
// mounted one. Unsure: nothing changes.
enum class Verdict { Good, Silent, Lost, Fenced, Exchanged, Unsure };
struct Finding {
  Verdict verdict = Verdict::Unsure;
  std::string reason;
};

class Health {
 public:
  Health(VolumeContext& volume, Paths& paths, Fence& fence, Publication& publication)
      : volume_(volume), paths_(paths), fence_(fence), publication_(publication) {}

  // Called after it was mounted or adopted.
  void begin();
  // While the link is down no check accesses the device, because a read would hang.
  asio::awaitable<Finding> look(Standing standing);
  // A request to a device queues behind all writers' data. While other requests complete, the device answers.
  // That matters while it is ready, or being flushed: a stalled one has to answer itself.
  bool is_io_moving();
  // For display only: no decision depends on it, and a target without this information is not queried again
  // soon.
  asio::awaitable<void> ask_about_drives();

 private:
  std::string why_lost(Place place) const;
  asio::awaitable<Finding> look_at_link();
  bool may_fail_over();
  bool is_link_trusted();
  asio::awaitable<Finding> probe();
  asio::awaitable<Finding> judge(ProbeAnswer answer);
  Finding silence(const Error& error);
  asio::awaitable<bool> has_new_uuid(CheckedMountPtr mount, std::string uuid);
  asio::awaitable<bool> is_shut_down();
  void look_for_damage(CheckedMount& mount, const mounts::MountedState& mounted);
  void look_for_cut(const mounts::Superblock& seen);

  VolumeContext& volume_;
  Paths& paths_;
  Fence& fence_;
  Publication& publication_;
  unsigned down_looks_ = 0;     // consecutive checks without a live path
  unsigned silent_probes_ = 0;  // consecutive probes without an answer
  // From then on a good read proves the link; max: the link is down, or no read has succeeded since.
  SteadyTime link_trusted_from_{};
  std::optional<SteadyTime> silent_since_;
  SteadyTime next_probe_, next_mounted_state_, next_smart_;
  std::optional<std::uint64_t> completed_io_;  // at the last check
  SteadyTime io_ended_at_{};                   // when it was last seen to increase
};

}  // namespace spark::volumes
