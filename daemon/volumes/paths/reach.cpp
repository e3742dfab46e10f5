// From a portal to a connection: found in the target's discovery log, then connected or taken over.
#include <algorithm>
#include <iterator>

#include "base/text.hpp"
#include "daemon/volumes/paths/paths.hpp"
#include "nvmetcp/resolve.hpp"

namespace spark::volumes {
namespace {

// The address of a live connection that another program made.
std::optional<nvmetcp::Portal> find_unowned(const VolumeContext& volume) {
  const auto all = volume.seams.snapshot.controllers(volume.settings.nvme->subsystem);
  if (!all) return std::nullopt;
  const auto found = std::ranges::find_if(
      *all, [](const nvmetcp::Controller& one) { return one.is_live() && one.owner.empty(); });
  return found == all->end() ? std::nullopt : std::optional(found->portal);
}

}  // namespace

asio::awaitable<Result<>> Paths::check_keys() {
  const nvmetcp::ConnectOptions& options = volume_.target->options;
  const bool asks_for_keys = !options.host_key_file.empty() || !options.tls_psk_file.empty();
  if (!asks_for_keys || look() != Link::Live) co_return Result<>{};
  if (auto taken = co_await take_over(); !taken) co_return taken;
  co_return check_secured();
}

// Controllers created by another program: they must have the configured keys and get this daemon's timers,
// otherwise they are not used.
asio::awaitable<Result<>> Paths::take_over() {
  for (Path& path : paths_) {
    if (are_several() && status_of(path) == nullptr) continue;
    auto connected = co_await connect_portal(path.portal);
    if (!connected && connected.error().kind == Errc::Refused) co_return connected.take_error();
    // Without a name service, at the address that is known of it: the next daemon recognizes it by its owner.
    const bool is_named = !are_several() && !nvmetcp::is_numeric(path.portal.address);
    const auto unowned = !connected && is_named ? find_unowned(volume_) : std::nullopt;
    if (unowned) connected = co_await connect_portal(*unowned);
    if (connected) note(path, *connected);
  }
  co_return Result<>{};
}

asio::awaitable<Result<>> Paths::reach() {
  if (look() == Link::Live) co_return co_await take_over();
  // A retry keeps the last failure's reason visible, because it is more informative.
  if (!volume_.attempts.failed)
    volume_.say(State::Waiting, "reading the discovery log of " + to_string(paths_.front().portal));
  Result<> first_failure;
  for (Path& path : paths_) {
    const auto offered = co_await find_offer(path.portal);
    Result<> reached;
    if (!offered) reached = fail(offered.error());
    if (offered) {
      if (auto alone = rivals_.check_none(); !alone) co_return alone;
      reached = co_await connect_offered(path, *offered);
      if (reached) co_return reached;
    }
    if (first_failure) first_failure = std::move(reached);
  }
  if (!first_failure && rivals_.are_there()) {
    first_failure.error().what += "; " + rivals_.names() + " is of the same NQN, and no address of target " +
                                  printable(volume_.target->name);
  }
  co_return first_failure;
}

// `elsewhere`: the address in the discovery log, if it is a different one.
asio::awaitable<Result<>> Paths::connect_offered(Path& path, std::string elsewhere) {
  volume_.say(State::Connecting, "connecting to " + to_string(path.portal));
  auto connected = co_await connect_portal(path.portal);
  if (connected) {
    volume_.attempts.healed_by_us = true;
    note(path, *connected);
    co_return Result<>{};
  }
  Error error = std::move(connected.error());
  if (!elsewhere.empty()) error.what += "; the target's discovery log has it at " + printable(elsewhere);
  // An immediate retry does not add an option that the kernel lacks.
  if (error.kind == Errc::Unsupported) error.kind = Errc::Refused;
  co_return fail(std::move(error));
}

// Distinguishes: not reachable, not offered to this host, offered at another address. A target without
// discovery passes. So does one with TLS: its key is for the subsystem, and its log would be sent in clear
// text. Returns the address in the log, if it is a different one.
asio::awaitable<Result<std::string>> Paths::find_offer(nvmetcp::Portal portal) {
  const nvmetcp::ConnectOptions& options = volume_.target->options;
  if (!options.tls_psk_file.empty()) co_return std::string();
  const auto log = co_await volume_.seams.fabric.discover(portal, options.interface);
  if (!log) {
    if (log.error().kind == Errc::Unsupported) co_return std::string();
    Error error = log.error();
    if (error.kind == Errc::Unavailable || error.kind == Errc::TimedOut) {
      co_return fail_with(std::move(error), "target " + volume_.target->name + " unreachable");
    }
    co_return fail(std::move(error));
  }

  rivals_.learn_from(*log);
  const std::string& subsystem = volume_.settings.nvme->subsystem;
  std::string near;
  std::vector<std::string> elsewhere;
  for (const nvmetcp::OfferedSubsystem& entry : log->entries) {
    if (entry.nqn != subsystem || entry.kind != nvmetcp::SubsystemKind::Io || entry.transport != "tcp")
      continue;
    if (entry.portal == portal) co_return std::string();
    // Some targets list a different address than the one they were contacted at (0.0.0.0, another NIC): the
    // port decides.
    (entry.portal.port == portal.port ? near : elsewhere.emplace_back()) = to_string(entry.portal);
  }
  if (!near.empty()) co_return near;
  if (!elsewhere.empty()) {
    co_return fail(Errc::Unavailable,
                   "subsystem " + printable(subsystem) + " is not offered at " + to_string(portal) +
                       " but at " + printable(join(elsewhere, ", ")),
                   "correct `address` and `port` of target " + volume_.target->name + " in the config");
  }
  const auto host = volume_.seams.neighbours.host_identity();
  if (!host) co_return host.take_error();
  co_return fail(Errc::Unavailable,
                 "subsystem " + printable(subsystem) + " is not offered to this host NQN by " +
                     to_string(portal) + " (it offers " + std::to_string(log->entries.size()) + " others)",
                 "add " + host->nqn + " to the subsystem's allow list on the target, or correct `subsystem`");
}

// Uses the timers in force at the end: a reload may have changed them meanwhile.
asio::awaitable<Result<nvmetcp::Connection>> Paths::connect_portal(nvmetcp::Portal portal) {
  const nvmetcp::ConnectOptions options = volume_.target->options;
  const std::string subsystem = volume_.settings.nvme->subsystem;
  auto connected = co_await volume_.seams.fabric.connect(subsystem, portal, options);
  const nvmetcp::ConnectOptions wanted = volume_.target->options;
  if (connected && wanted != options) {
    const auto set = co_await volume_.seams.fabric.set_timers(connected->controller, subsystem, wanted);
    if (!set) connected->differences.push_back(set.error().message());
  }
  co_return connected;
}

// The worker that connected it resolved the portal's name, so the address is the target's.
void Paths::note(Path& path, const nvmetcp::Connection& connection) {
  path.controller = connection.controller;
  path.differences = connection.differences;
  path.numeric.clear();
  FabricSnapshot& snapshot = volume_.seams.snapshot;
  const std::string& subsystem = volume_.settings.nvme->subsystem;
  auto all = snapshot.strangers(subsystem);
  std::ranges::move(snapshot.controllers(subsystem).value_or(std::vector<nvmetcp::Controller>{}),
                    std::back_inserter(all));
  const auto found = std::ranges::find(all, path.controller, &nvmetcp::Controller::name);
  if (found == all.end()) return;
  path.numeric = to_string(found->portal);
  snapshot.addresses().learn(found->portal);
}

}  // namespace spark::volumes
