// One volume: brings it up, watches it, and brings it up again, while it should be up. It only decides;
// access is behind seams/. The state machine is on this page; each part has its own state.
//
//   waiting ──target reached──▶ connecting ──namespace there──▶ mounting ──▶ ready ◀──link back── stalled
//      ▲                                                                   │  └──link down──────▶    │
//      └── any step failed: reason, back-off                               └──device gone──▶ lost ◀──┘
//   leaving: an operator takes it down: unwritten data is flushed, then it is unmounted ──▶ down
//   refused: a step found a problem that only a person can solve; checked again periodically
//   lost ──▶ recovering ──▶ ready, by the same steps
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/volumes/attachment/mount_point.hpp"
#include "daemon/volumes/attachment/nvme_attachment.hpp"
#include "daemon/volumes/context.hpp"
#include "daemon/volumes/fence/fence.hpp"
#include "daemon/volumes/health/health.hpp"
#include "daemon/volumes/outages.hpp"
#include "daemon/volumes/paths/paths.hpp"
#include "daemon/volumes/publication/publication.hpp"
#include "daemon/volumes/volume/requests.hpp"

namespace spark::volumes {

class Volume : public std::enable_shared_from_this<Volume> {
 public:
  using OnChange = std::function<void(const Volume&, State before)>;

  // `target` is empty for NFS.
  Volume(asio::any_io_executor executor, config::Volume settings, std::optional<config::Target> target,
         Seams seams, const Clock& clock, Timings timings, OnChange on_change);

  // Runs until stop(). A mounted volume stays mounted. `why`: for those who wait for it, as in "was removed
  // from the configuration".
  void start();
  void stop(std::string why = "is no longer watched");

  Requests& requests() { return requests_; }
  Publication& publication() { return publication_; }

  // A namespace has appeared. If this volume was missing it, the next attempt is due.
  void namespace_added();
  // One of its controllers has changed: checks it.
  void look_now(const std::string& controller);

  // Processes that would lose open files if it were unmounted, as text; empty means none.
  asio::awaitable<Result<std::string>> users();
  // Takes over settings that do not affect the mount or the connection, and sets its controllers' timers. If
  // a controller refuses, the settings stay as they were; the others may have the new timers.
  asio::awaitable<Result<>> set_live(config::Volume settings, std::optional<config::Target> target);
  // A sentence for `status`: a configuration change that could not be made; empty means none.
  void note_pending(std::string sentence) { context_.status.pending = std::move(sentence); }

  const VolumeContext& context() const { return context_; }
  const config::Volume& settings() const { return context_.settings; }
  const std::optional<config::Target>& target() const { return context_.target; }
  const Status& status() const { return context_.status; }
  // Its first attempt is in progress, or an old state is being replaced by the published one: a matter of
  // seconds.
  bool is_settling() const;
  // It needs a subsystem's controllers now, or may need them at any moment.
  bool wants_subsystem(const std::string& subsystem) const;

 private:
  asio::awaitable<void> run();
  asio::awaitable<void> attempt();
  asio::awaitable<Result<>> bring_up();
  asio::awaitable<void> wait_after(Error error);
  asio::awaitable<void> watch();
  asio::awaitable<bool> act_on(Finding found, Place place);
  asio::awaitable<void> take_down();
  asio::awaitable<Result<>> leave_host(OnDown on_down);
  asio::awaitable<Result<>> follow_intent();
  asio::awaitable<Result<>> finish_down();

  VolumeContext context_;
  Outages outages_;
  Fence fence_;
  Paths paths_;
  Publication publication_;
  Health health_;
  MountPoint mount_point_;
  NvmeAttachment nvme_;
  std::string why_stopped_;
  Requests requests_;
  SteadyTime ready_since_;
};

}  // namespace spark::volumes
