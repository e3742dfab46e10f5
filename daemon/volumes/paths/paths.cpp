#include "daemon/volumes/paths/paths.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "daemon/log.hpp"
#include "daemon/token.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/sysfs/registry.hpp"

namespace spark::volumes {
namespace {

// A path without a connection is down if none of the others is live.
bool is_down(const PathStatus* path, const std::vector<PathStatus>& all) {
  if (path != nullptr) return path->state != "live";
  return !all.empty() && std::ranges::none_of(all, [](const PathStatus& one) { return one.state == "live"; });
}

// To another device than the volume's present one.
bool leads_elsewhere(const VolumeContext& volume, const nvmetcp::Controller& old) {
  const auto now = own_namespace(volume.seams, volume.settings);
  const auto its = volume.seams.snapshot.find_namespace_below({old}, volume.settings.nvme->nsid);
  return now && its && now->device_number != its->device_number;
}

// Made by another program, or before the interface was configured: a connection over the right one is made
// beside it, and the kernel may send data over either.
std::set<std::string> on_other_interfaces(const std::vector<nvmetcp::Controller>& all,
                                          const std::string& wanted) {
  std::set<std::string> found;
  for (const nvmetcp::Controller& one : all) {
    if (wanted.empty() || one.transport != "tcp" || !one.is_live() || one.interface == wanted) continue;
    found.insert(one.name + " at " + to_string(one.portal) + " is not bound to interface " +
                 printable(wanted) + (one.interface.empty() ? "" : ", but to " + printable(one.interface)) +
                 ": data may go over it too; while another path is live, `sudo nvme disconnect -d " +
                 one.name + "` ends it");
  }
  return found;
}

}  // namespace

std::string end_old(const nvmetcp::Controller& old) {
  return "if that address does not come back, `sudo nvme disconnect -d " + old.name +
         "` ends the I/O that waits for it, and unwritten data is lost; the volume is then mounted again";
}

Paths::Paths(VolumeContext& volume) : volume_(volume), rivals_(volume), timer_(volume.executor) {
  if (!volume.target) return;
  for (const nvmetcp::Portal& portal : volume.target->portals)
    paths_.push_back(
        {portal, Backoff(volume.timings.first_retry, volume.timings.longest_retry, volume.clock)});
}

Link Paths::look() {
  const auto all = volume_.seams.snapshot.controllers(volume_.settings.nvme->subsystem);
  // An unknown state changes nothing.
  if (!all) return volume_.status.state == State::Stalled ? Link::Down : Link::Live;
  volume_.status.paths.clear();
  bool live = false, coming = false;
  for (const nvmetcp::Controller& controller : *all) {
    volume_.status.paths.push_back(
        {controller.name, to_string(controller.portal), controller.state, "", controller.owner});
    live = live || controller.is_live();
    coming = coming || (!controller.is_live() && !controller.is_going());
  }
  std::set<std::string> differences = on_other_interfaces(*all, volume_.target->options.interface);
  for (const Path& path : paths_) {
    const bool is_there = status_of(path) != nullptr;
    if (is_there) differences.insert(path.differences.begin(), path.differences.end());
    if (are_several() && !is_there)  // shows a portal without a connection in `status`
      volume_.status.paths.push_back({"", to_string(path.portal), "waiting", path.reason});
  }
  volume_.status.warn(Warning::Connection, join(std::vector(differences.begin(), differences.end()), "; "));
  if (!live && !coming) volume_.status.forget_connection();
  return live ? Link::Live : coming ? Link::Down : Link::Gone;
}

const PathStatus* Paths::status_of(const Path& path) const {
  const auto& all = volume_.status.paths;
  const auto found = std::ranges::find_if(all, [&](const PathStatus& one) {
    if (one.controller.empty()) return false;
    // Also by its address, because sysfs may show it before the connecting worker has reported it.
    const bool is_same = one.controller == path.controller && one.address == path.numeric;
    return is_same || one.address == to_string(path.portal);
  });
  return found == all.end() ? nullptr : &*found;
}

Result<> Paths::check_secured() {
  return volume_.seams.snapshot.check_paths_secured(volume_.settings.nvme->subsystem,
                                                    volume_.target->options);
}

void Paths::look_for_insecure() {
  auto safe = check_secured();
  if (safe && rivals_.were_looked_at()) safe = rivals_.check_none();
  std::string warning = safe ? "" : "data may go over it: " + safe.error().message();
  if (!warning.empty() && warning != volume_.status.insecure)
    log::warning("volume " + volume_.settings.name + ": " + warning);
  volume_.status.insecure = std::move(warning);
}

asio::awaitable<Result<>> Paths::set_timers() {
  const auto all = volume_.seams.snapshot.controllers(volume_.settings.nvme->subsystem);
  if (!all) co_return all.take_error();
  const nvmetcp::ConnectOptions options = volume_.target->options;
  Result<> first_failure;
  for (const nvmetcp::Controller& controller : *all) {
    if (controller.transport != "tcp" || controller.is_going()) continue;
    auto set = co_await volume_.seams.fabric.set_timers(controller.name, controller.subsystem, options);
    // A connection that ended meanwhile has no timers; its successor gets the new ones.
    if (!set && set.error().kind != Errc::NotFound && first_failure) first_failure = std::move(set);
  }
  co_return first_failure;
}

asio::awaitable<void> Paths::rescan() {
  const auto all = volume_.seams.snapshot.controllers(volume_.settings.nvme->subsystem);
  if (!all) co_return;
  for (const nvmetcp::Controller& controller : *all) {
    if (!controller.is_live() || nvmetcp::is_foreign(controller)) continue;
    const auto asked = co_await volume_.seams.fabric.rescan(controller.name, controller.subsystem);
    if (!asked) log::survived(asked.error());
  }
}

asio::awaitable<void> Paths::tend() {
  while (!volume_.stopped) {
    for (Path& path : paths_) {
      const State state = volume_.status.state;
      const bool is_mounted = state == State::Ready || state == State::Stalled;
      if (volume_.is_left() || !is_mounted) break;
      co_await tend(path);
    }
    if (volume_.status.state == State::Ready) co_await rivals_.look();
    if (volume_.status.state == State::Ready) co_await rivals_.remember();
    if (has_followed_name_ && volume_.status.state == State::Ready) {
      if (const auto left = co_await leave_old_addresses(); !left) log::survived(left.error());
    }
    timer_.expires_after(volume_.until_next(volume_.timings.watch));
    co_await timer_.wait();
  }
}

asio::awaitable<void> Paths::tend_once() {
  look();
  for (Path& path : paths_) {
    if (!is_connecting_) co_await tend(path);
  }
}

asio::awaitable<void> Paths::tend(Path& path) {
  const bool is_elsewhere = may_lead_elsewhere(path);
  if ((!is_elsewhere && !is_due(path)) || volume_.clock.steady() < path.next_attempt) co_return;
  is_connecting_ = true;
  if (is_elsewhere) {
    co_await follow_name(path);
  } else {
    co_await connect(path);
  }
  is_connecting_ = false;
}

// It existed before this daemon and is not taken over yet, or is a missing one of several. If the only path
// is missing, the volume's own attempts reconnect it.
bool Paths::is_due(const Path& path) const {
  if (!are_several() && volume_.status.state != State::Ready) return false;
  const bool is_ours = !path.controller.empty();
  return status_of(path) != nullptr ? !is_ours : are_several();
}

asio::awaitable<void> Paths::connect(Path& path) {
  const auto connected = co_await connect_portal(path.portal);
  if (connected) {
    note(path, *connected);
    path.reason.clear();
    path.backoff.reset();
    path.next_attempt = volume_.clock.steady() + volume_.timings.first_retry;
    co_return;
  }
  path.reason = connected.error().message();
  path.next_attempt = volume_.clock.steady() + path.backoff.next();
}

// Only if the kernel can tell whether the namespace at the new address is the same.
bool Paths::may_lead_elsewhere(Path& path) {
  const bool is_name = !nvmetcp::is_numeric(path.portal.address);
  if (!is_name || !is_down(status_of(path), volume_.status.paths)) {
    path.down_since.reset();
    return false;
  }
  if (!path.down_since) path.down_since = volume_.clock.steady();
  if (volume_.clock.steady() - *path.down_since < volume_.timings.name_doubt) return false;
  const auto block = own_namespace(volume_.seams, volume_.settings);
  return block && !block->id().empty();
}

// Fails while the name still resolves to the old address, because the old controller occupies it.
asio::awaitable<void> Paths::follow_name(Path& path) {
  const std::string before = path.controller;
  co_await connect(path);
  path.next_attempt = volume_.clock.steady() + volume_.timings.name_doubt;
  if (path.controller != before) volume_.attempts.healed_by_us = has_followed_name_ = true;
}

asio::awaitable<Result<>> Paths::leave_old_addresses() {
  has_followed_name_ = false;
  const auto all = volume_.seams.snapshot.controllers(volume_.settings.nvme->subsystem);
  if (!all) co_return all.take_error();
  Result<> first_failure;
  for (const nvmetcp::Controller& controller : *all) {
    const std::string address = to_string(controller.portal);
    const bool is_wanted = std::ranges::any_of(paths_, [&](const Path& path) {
      return path.controller == controller.name || to_string(path.portal) == address;
    });
    if (is_wanted || controller.is_live()) continue;
    Result<Change> gone = fail(Errc::Refused, "another program connected it");
    nvmetcp::CutOff no_device;
    if (controller.owner == nvmetcp::kOwner)
      gone = co_await volume_.seams.fabric.disconnect(controller.name, controller.subsystem,
                                                      std::move(no_device), {});
    else if (!leads_elsewhere(volume_, controller))
      continue;
    if (gone || !first_failure) continue;
    first_failure = fail(gone.error().kind,
                         "I/O waits for " + controller.name + " at " + address + ", which target " +
                             printable(volume_.target->name) + " has left: " + gone.error().what,
                         end_old(controller));
  }
  co_return first_failure;
}

}  // namespace spark::volumes
