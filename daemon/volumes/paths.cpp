// The paths of a volume. Where its target has several portals, each is connected by itself, and again when it
// is lost; the kernel's multipath makes one device of them. A path that was there before this daemon is taken
// over: it gets our timers and our name. The kernel tries an address for as long as `controller_loss` says,
// for ever by default: where a target's name leads elsewhere meanwhile, its new address becomes one more
// path, over which everything that waits goes on.
#include <algorithm>
#include <iterator>

#include "daemon/config/parse.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "daemon/volumes/volume.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/sysfs/registry.hpp"

namespace spark::volumes {

const PathStatus* Volume::path_of(const Portal& portal) const {
  const auto found = std::ranges::find_if(status_.paths, [&](const PathStatus& path) {
    if (path.controller.empty()) return false;
    // By its address as well: it may be there before whoever connected it has said so.
    const bool is_same = path.controller == portal.controller && path.address == portal.numeric;
    return is_same || path.address == portal_text(portal.address);
  });
  return found == status_.paths.end() ? nullptr : &*found;
}

// The worker that connected it looked the portal's name up: the address is the target's.
void Volume::note_path(Portal& portal, const std::string& controller) {
  portal.controller = controller;
  portal.numeric.clear();
  auto all = actions_->strangers(settings_.nvme->subsystem);
  std::ranges::move(
      actions_->controllers(settings_.nvme->subsystem).value_or(std::vector<nvmetcp::Controller>{}),
      std::back_inserter(all));
  const auto found = std::ranges::find(all, controller, &nvmetcp::Controller::name);
  if (found == all.end()) return;
  portal.numeric = portal_text(found->portal);
  actions_->addresses().learn(found->portal);
}

// As long as the volume is up. The first path is brought up with the volume, unless it was there.
asio::awaitable<void> Volume::tend_paths() {
  while (!stopped_) {
    for (Portal& portal : portals_) {
      const bool is_mounted = status_.state == State::Ready || status_.state == State::Stalled;
      if (stopped_ || !wanted_up_ || !is_mounted) break;
      const bool is_elsewhere = may_lead_elsewhere(portal);
      if ((!is_elsewhere && !is_due(portal)) || clock_.steady() < portal.next_attempt) continue;
      connecting_path_ = true;
      if (is_elsewhere) {
        co_await follow_name(portal);
      } else {
        co_await connect_path(portal);
      }
      connecting_path_ = false;
    }
    if (status_.state == State::Ready) co_await look_at_strangers();
    if (has_followed_name_ && status_.state == State::Ready) co_await leave_old_addresses();
    path_timer_.expires_after(pace_.watch);
    co_await path_timer_.async_wait(kToken);
  }
}

// It was there before this daemon and is not taken over yet, or is one of several that is missing. A missing
// only one is the volume's own matter.
bool Volume::is_due(Portal& portal) {
  const bool is_only = portals_.size() == 1;
  if (is_only && status_.state != State::Ready) return false;
  const bool is_ours = !portal.controller.empty();
  return path_of(portal) != nullptr ? !is_ours : !is_only;
}

bool Volume::is_down(const Portal& portal) const {
  if (const PathStatus* path = path_of(portal)) return path->state != "live";
  return !status_.paths.empty() &&
         std::ranges::none_of(status_.paths, [](const PathStatus& path) { return path.state == "live"; });
}

// Only where the kernel can tell whether it is the same namespace that is found at the new address.
bool Volume::may_lead_elsewhere(Portal& portal) {
  const bool is_name = !nvmetcp::is_numeric(portal.address.address);
  if (!is_name || !is_down(portal)) {
    portal.down_since.reset();
    return false;
  }
  if (!portal.down_since) portal.down_since = clock_.steady();
  if (clock_.steady() - *portal.down_since < pace_.name_doubt) return false;
  const auto block = actions_->find_namespace(settings_.nvme->subsystem, settings_.nvme->nsid);
  return block && !block->id().empty();
}

// As long as the name still leads to the old address this fails: the old controller stands for it.
asio::awaitable<void> Volume::follow_name(Portal& portal) {
  const std::string before = portal.controller;
  co_await connect_path(portal);
  portal.next_attempt = clock_.steady() + pace_.name_doubt;
  if (portal.controller != before) healed_by_us_ = has_followed_name_ = true;
}

// The volume answers over another path: what still tries an address that nothing leads to would do so for
// ever.
asio::awaitable<void> Volume::leave_old_addresses() {
  has_followed_name_ = false;
  const auto all = actions_->controllers(settings_.nvme->subsystem);
  if (!all) co_return;
  for (const nvmetcp::Controller& controller : *all) {
    const std::string address = portal_text(controller.portal);
    const bool is_wanted = std::ranges::any_of(portals_, [&](const Portal& portal) {
      return portal.controller == controller.name || portal_text(portal.address) == address;
    });
    if (is_wanted || controller.is_live() || nvmetcp::is_anothers(controller)) continue;
    const auto gone =
        co_await actions_->disconnect(controller.name, controller.subsystem, nvmetcp::Users::Spared);
    if (!gone) log::survived(gone.error());
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
    if (path_of(portal) != nullptr) continue;
    status_.paths.push_back({"", portal_text(portal.address), "waiting", portal.reason});
  }
}

}  // namespace spark::volumes
