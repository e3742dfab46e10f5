// The paths of a volume. Where its target has several portals, each is connected by itself, and again when it
// is lost; the kernel's multipath makes one device of them. A path that was there before this daemon is taken
// over: it gets our timers and our name.
#include <algorithm>

#include "daemon/config/parse.hpp"
#include "daemon/token.hpp"
#include "daemon/volumes/volume.hpp"

namespace spark::volumes {

bool Volume::has_path(const Portal& portal) const {
  return std::ranges::any_of(status_.paths, [&](const PathStatus& path) {
    if (path.controller.empty()) return false;
    // By its address as well: it may be there before whoever connected it has said so.
    const bool is_same = path.controller == portal.controller && path.address == portal.numeric;
    return is_same || path.address == portal_text(portal.address);
  });
}

void Volume::note_path(Portal& portal, const std::string& controller) {
  portal.controller = controller;
  portal.numeric.clear();
  const auto all = actions_->controllers(settings_.nvme->subsystem);
  if (!all) return;
  const auto found = std::ranges::find(*all, controller, &nvmetcp::Controller::name);
  if (found != all->end()) portal.numeric = portal_text(found->portal);
}

// As long as the volume is up. The first path is brought up with the volume, unless it was there.
asio::awaitable<void> Volume::tend_paths() {
  const bool is_only = portals_.size() == 1;
  while (!stopped_) {
    const bool is_up = status_.state == State::Ready || (status_.state == State::Stalled && !is_only);
    for (Portal& portal : portals_) {
      if (stopped_ || !wanted_up_ || !is_up) break;
      const bool is_ours = !portal.controller.empty();
      if (is_only && is_ours) co_return;
      const bool is_settled = has_path(portal) ? is_ours : is_only;
      if (is_settled || clock_.steady() < portal.next_attempt) continue;
      connecting_path_ = true;
      co_await connect_path(portal);
      connecting_path_ = false;
    }
    path_timer_.expires_after(pace_.watch);
    co_await path_timer_.async_wait(kToken);
  }
}

// With the timers in force when it ends: a reload may have changed them meanwhile.
asio::awaitable<Result<nvmetcp::Connection>> Volume::connect_portal(nvmetcp::Portal portal) {
  const auto options = config::connect_options(*target_);
  auto connected = co_await actions_->connect(settings_.nvme->subsystem, portal, options);
  const auto wanted = config::connect_options(*target_);
  if (connected && wanted != options) {
    const auto set = co_await actions_->set_timers(connected->controller, settings_.nvme->subsystem, wanted);
    if (!set) connected->differences.push_back(set.error().message());
  }
  co_return connected;
}

asio::awaitable<void> Volume::connect_path(Portal& portal) {
  const auto connected = co_await connect_portal(portal.address);
  if (connected) {
    note_path(portal, connected->controller);
    if (!connected->differences.empty()) status_.warnings = connected->differences;
    portal.reason.clear();
    portal.backoff.reset();
    portal.next_attempt = clock_.steady() + pace_.first_retry;
    co_return;
  }
  portal.reason = connected.error().message();
  portal.next_attempt = clock_.steady() + portal.backoff.next();
}

// What a person looks for in `status`: a portal that nothing is connected to.
void Volume::note_missing_paths() {
  if (portals_.size() < 2) return;
  for (const Portal& portal : portals_) {
    if (has_path(portal)) continue;
    status_.paths.push_back({"", portal_text(portal.address), "waiting", portal.reason});
  }
}

}  // namespace spark::volumes
