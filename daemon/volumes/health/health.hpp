// A mounted volume's health: its mount, its link, and whether I/O comes back from its device.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>

#include "daemon/volumes/context.hpp"
#include "daemon/volumes/fence/fence.hpp"
#include "daemon/volumes/paths/paths.hpp"
#include "daemon/volumes/publication/publication.hpp"

namespace spark::volumes {

// Of one look. Silent: I/O waits. Lost: the mount gives nothing but errors, or is gone. Fenced: this host may
// not write to it any more. Exchanged: the device holds another file system than the mounted one. Unsure:
// nothing changes.
enum class Verdict { Good, Silent, Lost, Fenced, Exchanged, Unsure };
struct Finding {
  Verdict verdict = Verdict::Unsure;
  std::string reason;
};

class Health {
 public:
  Health(VolumeContext& volume, Paths& paths, Fence& fence, Publication& publication)
      : volume_(volume), paths_(paths), fence_(fence), publication_(publication) {}

  // It was mounted, or adopted, just now.
  void begin();
  // While the link is down nothing touches the device: a read would hang.
  asio::awaitable<Finding> look(Place place);
  // For people: nothing is decided by it, and a target that does not tell is not asked again soon.
  asio::awaitable<void> ask_about_drives();

 private:
  std::string why_lost(Place place) const;
  asio::awaitable<Finding> look_at_link();
  bool may_fail_over();
  bool is_link_trusted();
  asio::awaitable<Finding> probe();
  asio::awaitable<Finding> judge(ProbeAnswer answer);
  Finding silence(const Error& error);
  bool is_io_moving();
  asio::awaitable<bool> is_shut_down();
  void look_for_damage(const mounts::MountedState& mounted);

  VolumeContext& volume_;
  Paths& paths_;
  Fence& fence_;
  Publication& publication_;
  unsigned down_looks_ = 0;     // in a row that found no live path
  unsigned silent_probes_ = 0;  // in a row that were not answered
  std::optional<SteadyTime> silent_since_;
  SteadyTime next_probe_, next_mounted_state_, next_smart_;
  std::optional<std::uint64_t> completed_io_;  // when it was looked at last
  SteadyTime io_ended_at_{};                   // when it was last seen to have grown
};

}  // namespace spark::volumes
