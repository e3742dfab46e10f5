// The fabric, as nvmetcp/connect and daemon/workers/verbs/fabric_verbs.cpp use the kernel.
#include <sys/sysmacros.h>

#include <algorithm>

#include "nvmetcp/sysfs/adoption.hpp"
#include "nvmetcp/sysfs/registry.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"
#include "tests/histories/volumes/seams.hpp"

namespace spark::histories {
namespace {

constexpr Duration kFabric{45'000}, kResolve{20'000}, kTimers{10'000};
constexpr Duration kNameService{5'000}, kNoAnswer{3'000};  // until a dead one is given up

// A name service that is away answers late; so does an address without a host. `waited`: it was waited for.
std::optional<Pause> wait_for_name(Host& host, const nvmetcp::Portal& portal, bool& waited) {
  if (host.network.resolve(host.index, portal) || std::exchange(waited, true)) return std::nullopt;
  return Pause{kNameService, false};
}

Result<Change> remove(Host& host, const std::string& controller, const std::string& subsystem,
                      const nvmetcp::CutOff& cut_off, std::vector<std::string> leaving) {
  const Connection* found = host.driver.find(controller);
  if (found == nullptr) return Change::AlreadyThere;
  const std::string doing = "disconnecting " + controller + ": ";
  if (found->shown.subsystem != subsystem)
    return fail(Errc::Refused, doing + "it belongs to " + found->shown.subsystem);
  if (nvmetcp::is_foreign(found->shown))
    return fail(Errc::Refused, doing + "it belongs to " + found->shown.owner);
  leaving.push_back(controller);
  for (const HeadPtr& head : host.driver.lost_with(leaving)) {
    const auto supers = host.mounts.supers();
    const bool is_used =
        std::ranges::any_of(supers, [&](const SuperPtr& super) { return super->head == head; });
    if (is_used && !cut_off.covers(head->device_number()))
      return fail(Errc::Refused, doing + "its " + head->device + " is still in use on this host");
  }
  if (found->while_down)
    host.scene.judge.broken("foreign-disconnected",
                            host.name + ": " + controller + ", which a person connected, was disconnected");
  host.scene.tell("  " + host.name + ": the daemon disconnects " + controller);
  host.driver.remove(controller, Actor::Daemon);
  return Change::Done;
}

}  // namespace

asio::awaitable<Result<nvmetcp::DiscoveryLog>> HostFabric::discover(nvmetcp::Portal portal,
                                                                    std::string /*interface*/) {
  auto work = [&host = host_, portal, named = false, asked = false]() mutable -> Turn<nvmetcp::DiscoveryLog> {
    if (const auto pause = wait_for_name(host, portal, named)) return *pause;
    const auto numeric = host.network.resolve(host.index, portal);
    if (!numeric) return Result<nvmetcp::DiscoveryLog>(fail(numeric.error()));
    const Target* target = host.network.reach(host.index, *numeric);
    if (target == nullptr && !std::exchange(asked, true)) return Pause{kNoAnswer, false};
    if (target == nullptr)
      return Result<nvmetcp::DiscoveryLog>(fail(Errc::Unavailable, to_string(portal) + ": no answer"));
    nvmetcp::DiscoveryLog log;
    for (const auto& [subsystem, unused] : target->offered) {
      nvmetcp::OfferedSubsystem offered;
      offered.nqn = subsystem;
      offered.transport = "tcp";
      offered.portal = {target->address, 4420};
      log.entries.push_back(std::move(offered));
    }
    return Result<nvmetcp::DiscoveryLog>(std::move(log));
  };
  Work<nvmetcp::DiscoveryLog> asked = std::move(work);
  co_return co_await host_.workers.run(volume_, "discover", kFabric, std::move(asked));
}

asio::awaitable<Result<nvmetcp::Connection>> HostFabric::connect(std::string subsystem,
                                                                 nvmetcp::Portal portal,
                                                                 nvmetcp::ConnectOptions options) {
  auto work = [&host = host_, subsystem, portal, interface = options.interface, named = false,
               asked = false]() mutable -> Turn<nvmetcp::Connection> {
    using Made = Result<nvmetcp::Connection>;
    if (const auto pause = wait_for_name(host, portal, named)) return *pause;
    const auto numeric = host.network.resolve(host.index, portal);
    if (!numeric) return Made(fail(numeric.error()));
    auto known = nvmetcp::find_adoptable(host.driver.controllers(), subsystem, {*numeric},
                                         host.driver.identity(), interface);
    if (!known) return Made(known.take_error());
    if (*known) {
      const std::string name = (*known)->name;
      host.driver.claim(name);
      return Made(nvmetcp::Connection{name, Change::AlreadyThere, {}});
    }
    if (host.network.reach(host.index, *numeric) == nullptr && !std::exchange(asked, true))
      return Pause{kNoAnswer, false};
    const auto made = host.driver.connect(subsystem, *numeric, Actor::Daemon);
    if (!made) return Made(made.take_error());
    host.driver.claim(*made);
    host.scene.tell("  " + host.name + ": the daemon connects " + *made + " to " + to_string(*numeric));
    return Made(nvmetcp::Connection{*made, Change::Done, {}});
  };
  Work<nvmetcp::Connection> asked = std::move(work);
  co_return co_await host_.workers.run(volume_, "connect", kFabric, std::move(asked));
}

asio::awaitable<Result<std::vector<nvmetcp::Portal>>> HostFabric::resolve(nvmetcp::Portal portal) {
  using Portals = std::vector<nvmetcp::Portal>;
  auto work = [&host = host_, portal, named = false]() mutable -> Turn<Portals> {
    if (const auto pause = wait_for_name(host, portal, named)) return *pause;
    const auto numeric = host.network.resolve(host.index, portal);
    if (!numeric) return Result<Portals>(fail(numeric.error()));
    return Result<Portals>(Portals{*numeric});
  };
  Work<Portals> asked = std::move(work);
  co_return co_await host_.workers.run(volume_, "resolve", kResolve, std::move(asked));
}

asio::awaitable<Result<>> HostFabric::set_timers(std::string controller, std::string /*subsystem*/,
                                                 nvmetcp::ConnectOptions /*options*/) {
  auto work = [&host = host_, controller]() -> Turn<void> {
    if (host.driver.find(controller) == nullptr)
      return Result<>(fail(Errc::NotFound, "setting the timers of " + controller + ": it is gone"));
    return Result<>();
  };
  Work<void> asked = std::move(work);
  co_return co_await host_.workers.run(volume_, "timers", kTimers, std::move(asked));
}

asio::awaitable<Result<>> HostFabric::rescan(std::string controller, std::string /*subsystem*/) {
  auto work = [&host = host_, controller]() -> Turn<void> {
    host.driver.rescan(controller);
    return Result<>();
  };
  Work<void> asked = std::move(work);
  co_return co_await host_.workers.run(volume_, "rescan", kTimers, std::move(asked));
}

// The kernel's removal waits for a target that is silent and still taken for live.
asio::awaitable<Result<Change>> HostFabric::disconnect(std::string controller, std::string subsystem,
                                                       nvmetcp::CutOff cut_off,
                                                       std::vector<std::string> leaving) {
  auto work = [&host = host_, controller, subsystem, cut_off, leaving]() -> Turn<Change> {
    const Connection* found = host.driver.find(controller);
    const bool is_silent = found != nullptr && found->shown.is_live() &&
                           host.network.reach(host.index, found->shown.portal) == nullptr;
    if (is_silent) return Pause{kLooksAgain, false};
    return remove(host, controller, subsystem, cut_off, leaving);
  };
  Work<Change> asked = std::move(work);
  co_return co_await host_.workers.run(volume_, "disconnect", kFabric, std::move(asked));
}

asio::awaitable<Result<nvmetcp::Smart>> HostFabric::smart(std::string controller) {
  co_return fail(Errc::Unsupported, controller + " has no SMART log page");
}

Result<std::vector<nvmetcp::Controller>> HostFabricView::connected(const std::string& subsystem) {
  return nvmetcp::controllers_of(host_.driver.controllers(), subsystem, host_.driver.identity().nqn);
}

Result<> HostFabricView::check_paths_secured(const std::string& /*subsystem*/,
                                             const nvmetcp::ConnectOptions& /*options*/) {
  return {};
}

Result<nvmetcp::Namespace> HostFabricView::find_namespace_below(
    const std::vector<nvmetcp::Controller>& controllers, std::uint32_t nsid) {
  for (const bool wants_live : {true, false}) {
    for (const nvmetcp::Controller& one : controllers) {
      const Connection* connection = host_.driver.find(one.name);
      if (connection == nullptr || one.is_live() != wants_live) continue;
      for (const HeadPtr& head : connection->heads) {
        if (head->nsid != nsid) continue;
        nvmetcp::Namespace found;
        found.device = head->device;
        found.nsid = nsid;
        found.bytes = head->disk->bytes;
        found.uuid = head->ns_uuid;
        found.device_number = head->device_number();
        return found;
      }
    }
  }
  return fail(Errc::NotFound, "namespace " + std::to_string(nsid) + " is not there (yet)");
}

Result<nvmetcp::DeviceOwner> HostFabricView::owner_of_device(dev_t device) {
  if (const HeadPtr head = host_.driver.head_of(device))
    return nvmetcp::DeviceOwner{head->subsystem, head->nsid};
  if (major(device) == 259 || device < 256)
    return fail(Errc::NotFound, "block device " + std::to_string(device) + " does not exist any more");
  return fail(Errc::Invalid, "block device " + std::to_string(device) + " is not NVMe");
}

}  // namespace spark::histories
