// What a volume does and sees in a world in memory.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "daemon/volumes/seams/seams.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"
#include "tests/support/fake_reservations.hpp"
#include "tests/support/fake_world.hpp"

namespace spark::volumes {

class FakeVolumeActions final : public Fabric,
                                public FabricSnapshot,
                                public Mounts,
                                public Device,
                                public Reservations,
                                public VolumeStore,
                                public Neighbours {
 public:
  explicit FakeVolumeActions(FakeWorld& world) : world_(world) {}

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
    co_await asio::post(asio::use_awaitable);  // what it began goes on before the connect is done
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
  asio::awaitable<Result<Change>> disconnect(std::string controller, std::string,
                                             nvmetcp::Users users) override {
    world_.touched.emplace_back(users == nvmetcp::Users::CutOff ? "cut off" : "disconnect");
    std::erase_if(world_.controllers, [&](const auto& one) { return one.name == controller; });
    world_.forget_lost();
    if (world_.controllers.empty()) world_.lose_device();
    co_return Change::Done;
  }
  asio::awaitable<Result<mounts::Superblock>> read_superblock(std::string) override {
    world_.touched.emplace_back("superblock");
    co_return world_.superblock;
  }
  asio::awaitable<Result<mounts::Guard>> guard(std::filesystem::path, bool is_in_use) override {
    world_.guarded.push_back(is_in_use);
    if (world_.guard_error) co_return fail(*world_.guard_error);
    mounts::Guard guard = world_.guard;
    guard.is_ours = guard.is_ours || is_in_use;
    co_return guard;
  }
  asio::awaitable<Result<Mounted>> mount(mounts::MountRequest request, FilesystemIdentity identity) override {
    world_.touched.emplace_back(!request.read_only      ? "mount rw"
                                : request.keeps_journal ? "mount closed"
                                                        : "mount ro");
    world_.last_mount = request;
    world_.while_mounting();
    std::string users;
    if (const auto& dead = request.replaces) {
      const auto gone = co_await unmount(request.target, dead->detach);
      if (!gone) co_return fail(gone.error());
      users = gone->users;
    }
    if (world_.mount_error) co_return fail(*world_.mount_error);
    world_.mount(request.target, request.read_only, world_.number_of(request.source), request.source,
                 request.type == "nfs" ? "nfs4" : request.type);
    if (!identity.uuid.empty()) world_.pinned = identity;
    co_return Mounted{Change::Done, std::move(users)};
  }
  asio::awaitable<Result<>> pin(FilesystemIdentity identity) override {
    world_.pinned = identity;
    co_return Result<>{};
  }
  asio::awaitable<Result<Unmounted>> unmount(std::filesystem::path target, bool detach) override {
    world_.touched.emplace_back(detach ? "detach" : "unmount");
    world_.while_unmounting();
    if (!detach && world_.unmount_takes.count() > 0) {
      asio::steady_timer timer(co_await asio::this_coro::executor, world_.unmount_takes);
      co_await timer.async_wait(asio::use_awaitable);
    }
    if (world_.unmount_error) co_return fail(*world_.unmount_error);
    const mounts::Mount* top = mounts::mounted_at(world_.mounts, target);
    if (top != nullptr) world_.mounts.erase(world_.mounts.begin() + (top - world_.mounts.data()));
    co_return Unmounted{Change::Done, detach ? world_.users : ""};
  }
  asio::awaitable<Result<std::string>> users(std::filesystem::path) override { co_return world_.open_files; }
  asio::awaitable<Result<ProbeAnswer>> probe(ProbeRequest request) override {
    world_.touched.emplace_back("probe");
    const bool is_silent = world_.silent_probes > 0;
    if (is_silent) --world_.silent_probes;
    if (is_silent || !world_.answers) co_return fail(Errc::TimedOut, "no answer");
    ProbeAnswer answer;
    answer.us = world_.probe_us;
    answer.uuid = world_.superblock.uuid;
    answer.shut_down = request.device.empty() && world_.shut_down;
    answer.being_written = world_.superblock.being_written;
    answer.stamp = world_.superblock.stamp;
    answer.mmp_node = world_.superblock.mmp_node;
    if (request.keep_reservation) answer.holding = *nvmetcp::keep_reservation(commands_, kUs);
    co_return answer;
  }
  asio::awaitable<Result<mounts::MountedState>> mounted_state(std::filesystem::path) override {
    if (!world_.mount_answers) co_return fail(Errc::TimedOut, "no answer");
    co_return mounts::MountedState{world_.shut_down, world_.mounted_uuid, world_.superblock.damage,
                                   world_.published};
  }
  asio::awaitable<Result<nvmetcp::ReservationState>> reservation(ReservationRequest request) override {
    if (request.act == ReservationAct::Look) co_return nvmetcp::look_at_reservation(commands_, kUs);
    if (request.act == ReservationAct::Hold) co_return nvmetcp::hold_reservation(commands_, kUs);
    if (request.act == ReservationAct::Take) co_return nvmetcp::take_reservation(commands_, kUs);
    const bool released = *nvmetcp::release_reservation(commands_, kUs) == Change::Done;
    if (released) world_.touched.emplace_back("release");
    co_return nvmetcp::look_at_reservation(commands_, kUs);
  }
  asio::awaitable<Result<nvmetcp::Smart>> smart(std::string controller) override {
    world_.touched.push_back("smart " + controller);
    if (!world_.smart) co_return fail(Errc::Unsupported, "no such log page");
    co_return *world_.smart;
  }
  asio::awaitable<Result<mounts::Closed>> publish(std::filesystem::path, std::string,
                                                  mounts::AfterPublish then, bool) override {
    world_.touched.emplace_back("publish");
    world_.while_publishing();
    // Whoever watches looks meanwhile.
    for (unsigned turn = 0; turn < world_.publish_takes; ++turn) co_await asio::post(asio::use_awaitable);
    if (world_.publish_error) co_return fail(*world_.publish_error);
    const std::uint64_t before = world_.published ? world_.published->generation : 0;
    world_.published = mounts::Published{before + 1, FakeWorld::kNode, "2026-11-22T05:00:00Z"};
    ++world_.superblock.stamp;
    if (then == mounts::AfterPublish::ReadOnly) {
      set_mounts("ro,noatime");
      world_.pinned->is_published = true;
      world_.pinned->stamp = world_.superblock.stamp;
    }
    co_return mounts::Closed{*world_.published, world_.superblock.stamp};
  }
  asio::awaitable<Result<>> make_writable(std::filesystem::path, std::string device, bool) override {
    world_.touched.emplace_back(device.empty() ? "unpin" : "make writable");
    if (world_.writable_error) co_return fail(*world_.writable_error);
    world_.pinned->is_published = false;
    if (device.empty()) co_return Result<>{};
    set_mounts("rw,noatime");
    ++world_.superblock.stamp;
    co_return Result<>{};
  }
  asio::awaitable<Result<>> stop_writing(std::filesystem::path, std::string) override {
    world_.touched.emplace_back("stop writing");
    co_return Result<>{};
  }
  asio::awaitable<Result<>> save_intent(Intent intent) override {
    world_.touched.emplace_back(intent.up            ? "record up"
                                : intent.is_released ? "record released"
                                                     : "record down");
    if (world_.intent_takes.count() > 0) {
      asio::steady_timer timer(co_await asio::this_coro::executor, world_.intent_takes);
      co_await timer.async_wait(asio::use_awaitable);
    }
    if (world_.intent_error) co_return fail(*world_.intent_error);
    world_.intent = intent;
    co_return Result<>{};
  }
  asio::awaitable<void> save_history(json::object history) override {
    world_.history = std::move(history);
    co_return;
  }

  std::string node_name() override { return FakeWorld::kNode; }
  Result<nvmetcp::HostIdentity> host_identity() override {
    return nvmetcp::HostIdentity{FakeWorld::kHost, FakeWorld::kHostId};
  }
  Result<std::vector<nvmetcp::Controller>> controllers(const std::string& subsystem) override {
    return addresses_.ours(nvmetcp::controllers_of(world_.controllers, subsystem, FakeWorld::kHost));
  }
  nvmetcp::TargetAddresses& addresses() override { return addresses_; }
  std::vector<nvmetcp::Controller> strangers(const std::string& subsystem) override {
    return addresses_.strangers(nvmetcp::controllers_of(world_.controllers, subsystem, FakeWorld::kHost));
  }
  Result<> check_paths_secured(const std::string&, const nvmetcp::ConnectOptions&) override {
    if (world_.unsecured) return fail(*world_.unsecured);
    return {};
  }
  Result<nvmetcp::Namespace> find_namespace(const std::string& subsystem, std::uint32_t nsid) override {
    return find_namespace_below(*controllers(subsystem), nsid);
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
  Result<std::string> subsystem_of_device(dev_t device) override {
    const auto found = world_.owners.find(device);
    if (found == world_.owners.end()) return fail(Errc::NotFound, "gone");
    return found->second;
  }
  const Result<std::vector<mounts::Mount>>& mount_table() override {
    table_ = world_.mounts;
    if (!world_.mount_table_readable) table_ = fail(Errc::Failed, "mountinfo can't be read");
    return table_;
  }
  std::optional<FilesystemIdentity> pinned_identity() override { return world_.pinned; }
  Result<Intent> saved_intent() override { return world_.intent; }
  std::optional<std::uint64_t> completed_io(const std::string&) override {
    return completed_ += world_.io_per_look;
  }
  json::object saved_history() override { return world_.history; }
  bool has_stuck_worker() override { return world_.stuck; }
  bool subsystem_shared() override { return world_.shared; }
  std::string target_at(const nvmetcp::Portal& numeric) override {
    return numeric.address == FakeWorld::kOtherAddress ? "spare"
           : numeric.address == "10.0.0.5"             ? "rose"
                                                       : "";
  }

 private:
  void set_mounts(const std::string& options) {
    for (mounts::Mount& mounted : world_.mounts) mounted.options = options;
  }
  inline static const nvmetcp::LocalRegistrant kUs{FakeWorld::kHostId, FakeWorld::kKey,
                                                   FakeWorld::kFormerKey};
  FakeWorld& world_;
  nvmetcp::TargetAddresses addresses_;
  std::uint64_t completed_ = 0;
  Result<std::vector<mounts::Mount>> table_;
  nvmetcp::fake::FakeReservations commands_{world_.reservations, FakeWorld::kHostId};
};

}  // namespace spark::volumes
