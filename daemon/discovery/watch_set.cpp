#include "daemon/discovery/watch_set.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/sysfs/registry.hpp"

namespace spark::discovery {
namespace {

// A target with TLS is not watched, because the discovery service would be queried in clear text.
bool is_watched(const config::Config& config, const std::string& target) {
  if (!config.targets.at(target).options.tls_psk_file.empty()) return false;
  return std::ranges::any_of(config.volumes, [&](const config::Volume& volume) {
    return volume.nvme && volume.nvme->target == target;
  });
}

// A set, because a target may offer thousands of subsystems, and there may be hundreds of volumes.
std::set<std::string> configured_of(const config::Config& config, const std::string& target) {
  std::set<std::string> subsystems;
  for (const config::Volume& volume : config.volumes) {
    if (volume.nvme && volume.nvme->target == target) subsystems.insert(volume.nvme->subsystem);
  }
  return subsystems;
}

// A watch of this target would take the connection over. A name may lead to any address.
bool may_use(const config::Target& target, const nvmetcp::Controller& connection) {
  const std::string& interface = target.options.interface;
  if (!interface.empty() && connection.interface != interface) return false;
  return std::ranges::any_of(target.portals, [&](const nvmetcp::Portal& portal) {
    if (!nvmetcp::is_numeric(portal.address)) return true;
    return portal.port == connection.portal.port &&
           nvmetcp::same_address(portal.address, connection.portal.address);
  });
}

asio::awaitable<void> leave_stray(std::shared_ptr<Actions> actions, nvmetcp::Controller stray) {
  const auto gone = co_await actions->disconnect(stray.name, stray.subsystem);
  const std::string which = "the discovery service at " + to_string(stray.portal) +
                            ", of no target in use any more, was still connected: ";
  log::info(which + (gone ? stray.name + " is disconnected" : gone.error().what));
}

}  // namespace

WatchSet::WatchSet(asio::any_io_executor executor, MakeActions make_actions, const Clock& clock,
                   TargetWatch::OnChange on_change)
    : executor_(std::move(executor)),
      make_actions_(std::move(make_actions)),
      clock_(clock),
      on_change_(std::move(on_change)) {}

std::shared_ptr<TargetWatch> WatchSet::make(const config::Target& target) {
  return std::make_shared<TargetWatch>(executor_, target, make_actions_(target), clock_, Timings{},
                                       on_change_);
}

void WatchSet::apply(const config::Config& config) {
  auto before = std::move(watches_);
  watches_.clear();
  for (const auto& [name, target] : config.targets) {
    if (!is_watched(config, name)) continue;
    const auto there = before.find(name);
    const bool is_same = there != before.end() && there->second->target().portals == target.portals &&
                         there->second->target().options.interface == target.options.interface;
    auto watch = is_same ? there->second : make(target);
    if (is_same) {
      before.erase(there);
    } else {
      watch->start();
    }
    watches_.emplace(name, std::move(watch));
  }
  for (const auto& [name, watch] : before) {
    if (is_shared(watch->status().controller)) {
      watch->stop();
    } else {
      watch->end();
    }
  }
  if (!std::exchange(has_left_strays_, true)) leave_strays();
}

// Connections of an earlier daemon, to targets that the configuration has lost while none ran. The kernel
// would keep trying to restore them.
void WatchSet::leave_strays() {
  config::Target none;
  none.name = "that is not used any more";
  const std::shared_ptr<Actions> actions = make_actions_(none);
  const auto all = actions->controllers();
  if (!all) return;
  for (const nvmetcp::Controller& one : *all) {
    const bool is_used = std::ranges::any_of(
        watches_, [&](const auto& entry) { return may_use(entry.second->target(), one); });
    if (one.is_discovery && one.owner == nvmetcp::kOwner && !is_used)
      launch(executor_, "end of a stray watch", leave_stray(actions, one));
  }
}

// Two targets with the same address share one connection.
bool WatchSet::is_shared(const std::string& controller) const {
  return std::ranges::any_of(watches_, [&](const auto& entry) {
    return !controller.empty() && entry.second->status().controller == controller;
  });
}

void WatchSet::stop() {
  for (const auto& [name, watch] : watches_) watch->stop();
}

void WatchSet::heard(const Uevent& event) {
  for (const auto& [name, watch] : watches_) watch->heard(event);
}

json::array WatchSet::to_json(const config::Config& config) const {
  json::array targets;
  for (const auto& [name, watch] : watches_) {
    const Status& status = watch->status();
    const auto configured = configured_of(config, name);
    json::array offered;
    for (const std::string& subsystem : status.offered) {
      offered.push_back(
          json::object{{"subsystem", printable(subsystem)}, {"configured", configured.contains(subsystem)}});
    }
    const nvmetcp::Portal& portal = watch->target().portals.front();
    targets.push_back(json::object{
        {"name", printable(name)},
        {"address", printable(portal.address)},
        {"port", portal.port},
        {"controller", or_null(printable(status.controller))},
        {"reason", or_null(printable(status.reason))},
        {"asked_at", status.asked_at ? json::value(rfc3339(*status.asked_at)) : json::value(nullptr)},
        {"offered", std::move(offered)}});
  }
  return targets;
}

}  // namespace spark::discovery
