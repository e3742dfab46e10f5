// The fabric of a FakeWorld, and its view in sysfs.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "nvmetcp/sysfs/registry.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"
#include "tests/support/fake_world.hpp"

namespace spark::volumes {

class FakeFabric final : public Fabric {
 public:
  explicit FakeFabric(FakeWorld& world) : world_(world) {}

  asio::awaitable<Result<nvmetcp::DiscoveryLog>> discover(nvmetcp::Portal portal, std::string) override {
    world_.touched.emplace_back("discover");
    if (!world_.target_up) co_return fail(Errc::Unavailable, portal.address + ": connection refused");
    if (!world_.has_discovery)
      co_return fail(Errc::Unsupported, portal.address + " has no discovery service");
    nvmetcp::DiscoveryLog log;
    log.entries = world_.offers;
    co_return log;
  }
  asio::awaitable<Result<nvmetcp::Connection>> connect(std::string subsystem, nvmetcp::Portal portal,
                                                       nvmetcp::ConnectOptions options) override {
    world_.touched.emplace_back("connect");
    world_.last_options = options;
    world_.while_connecting();
    co_await asio::post(asio::use_awaitable);  // coroutines started by while_connecting() run before the
                                               // connect is done
    if (world_.connect_error) co_return fail(*world_.connect_error);
    if (world_.unreachable.contains(portal.address))
      co_return fail(Errc::Unavailable, portal.address + " is out");
    if (const auto named = world_.names.find(portal.address); named != world_.names.end())
      portal.address = named->second;
    for (const auto& controller : world_.controllers) {
      if (controller.portal == portal && !controller.is_live())
        co_return fail(Errc::Unavailable, controller.name + " already stands for it");
    }
    nvmetcp::Connection connection;
    connection.controller = world_.plug_in(subsystem, portal);
    auto& owner =
        std::ranges::find(world_.controllers, connection.controller, &nvmetcp::Controller::name)->owner;
    if (owner.empty()) owner = nvmetcp::kOwner;
    connection.differences = world_.differences[portal.address];
    co_return connection;
  }
  asio::awaitable<Result<std::vector<nvmetcp::Portal>>> resolve(nvmetcp::Portal portal) override {
    const auto named = world_.names.find(portal.address);
    if (named == world_.names.end()) co_return fail(Errc::Unavailable, "looking up " + portal.address);
    std::vector<nvmetcp::Portal> numeric{{named->second, portal.port}};
    co_return numeric;
  }
  asio::awaitable<Result<>> set_timers(std::string controller, std::string,
                                       nvmetcp::ConnectOptions options) override {
    world_.touched.emplace_back("timers");
    if (world_.timers_error) co_return fail(*world_.timers_error);
    world_.timers[controller] = options;
    co_return Result<>{};
  }
  asio::awaitable<Result<>> rescan(std::string controller, std::string) override {
    world_.touched.emplace_back("rescan " + controller);
    if (world_.hidden) std::swap(world_.block, world_.hidden);
    co_return Result<>{};
  }
  asio::awaitable<Result<Change>> disconnect(std::string controller, std::string, nvmetcp::CutOff cut_off,
                                             std::vector<std::string> leaving) override {
    world_.touched.emplace_back(cut_off.is_none() ? "disconnect" : "cut off");
    world_.while_disconnecting();
    leaving.push_back(controller);
    for (const mounts::Mount& one : world_.mounts) {
      if (!cut_off.covers(one.device_number) && is_lost_with(leaving, one.device_number))
        co_return fail(Errc::Refused, "its " + one.source + " is still in use", "unmount it there first");
    }
    const bool are_last = std::ranges::all_of(world_.controllers, [&](const auto& one) {
      return std::ranges::find(leaving, one.name) != leaving.end();
    });
    // Refused: in use, unless another controller leads there.
    if (world_.disconnect_error && (are_last || world_.disconnect_error->kind != Errc::Refused))
      co_return fail(*world_.disconnect_error);
    std::erase_if(world_.controllers, [&](const auto& one) { return one.name == controller; });
    world_.forget_lost();
    if (world_.controllers.empty()) world_.lose_device();
    co_return Change::Done;
  }
  asio::awaitable<Result<nvmetcp::Smart>> smart(std::string controller) override {
    world_.touched.push_back("smart " + controller);
    if (!world_.smart) co_return fail(Errc::Unsupported, "no such log page");
    co_return *world_.smart;
  }

 private:
  bool leads_to(const nvmetcp::Controller& controller, dev_t device) const {
    const auto other = world_.others.find(controller.name);
    if (other != world_.others.end()) return other->second && other->second->device_number == device;
    const auto owner = world_.owners.find(device);
    const bool is_of_another = std::ranges::any_of(
        world_.others, [&](const auto& one) { return one.second && one.second->device_number == device; });
    return owner != world_.owners.end() && owner->second == controller.subsystem && !is_of_another;
  }
  bool is_lost_with(const std::vector<std::string>& leaving, dev_t device) const {
    bool is_lost = false;
    for (const nvmetcp::Controller& one : world_.controllers) {
      if (!leads_to(one, device)) continue;
      if (std::ranges::find(leaving, one.name) == leaving.end()) return false;
      is_lost = true;
    }
    return is_lost;
  }

  FakeWorld& world_;
};

class FakeFabricSnapshot final : public FabricSnapshot {
 public:
  explicit FakeFabricSnapshot(FakeWorld& world) : world_(world) {}

  Result<std::vector<nvmetcp::Controller>> connected(const std::string& subsystem) override {
    return nvmetcp::controllers_of(world_.controllers, subsystem, FakeWorld::kHost);
  }
  Result<> check_paths_secured(const std::string&, const nvmetcp::ConnectOptions&) override {
    if (world_.unsecured) return fail(*world_.unsecured);
    return {};
  }
  Result<nvmetcp::Namespace> find_namespace_below(const std::vector<nvmetcp::Controller>& through,
                                                  std::uint32_t) override {
    for (const auto& controller : through) {
      const auto elsewhere = world_.others.find(controller.name);
      if (elsewhere == world_.others.end() && world_.block) return *world_.block;
      if (elsewhere != world_.others.end() && elsewhere->second) return *elsewhere->second;
    }
    return fail(Errc::NotFound, "namespace 1 is not there");
  }
  Result<nvmetcp::DeviceOwner> owner_of_device(dev_t device) override {
    const auto found = world_.owners.find(device);
    if (found == world_.owners.end()) return fail(Errc::NotFound, "gone");
    const auto nsid = world_.nsids.find(device);
    return nvmetcp::DeviceOwner{found->second, nsid == world_.nsids.end() ? 1 : nsid->second};
  }

 private:
  FakeWorld& world_;
};

}  // namespace spark::volumes
