// The mounts, the device and the reservation of a FakeWorld.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tests/support/fake_world.hpp"

namespace spark::volumes {

class FakeMounts final : public Mounts {
 public:
  explicit FakeMounts(FakeWorld& world) : world_(world) {}

  asio::awaitable<Result<Mounted>> mount(mounts::MountRequest request, FilesystemIdentity identity) override {
    world_.touched.emplace_back(!request.read_only      ? "mount rw"
                                : request.keeps_journal ? "mount closed"
                                                        : "mount ro");
    world_.last_mount = request;
    world_.while_mounting();
    std::string users;
    if (const auto& dead = request.replaces) {
      const auto gone =
          co_await remove(request.target, dead->detach ? mounts::Unmount::Detach : mounts::Unmount::Plain);
      if (!gone) co_return fail(gone.error());
      users = *gone;
    }
    if (world_.mount_error) co_return fail(*world_.mount_error);
    if (world_.is_state_full && !identity.uuid.empty()) co_return fail(Errc::NoSpace, "recording it");
    world_.mount(request.target, request.read_only, world_.number_of(request.source), request.source,
                 request.type == "nfs" ? "nfs4" : request.type);
    if (!identity.uuid.empty()) world_.pinned = identity;
    co_return Mounted{Change::Done, std::move(users), world_.mount_warning};
  }
  asio::awaitable<Result<mounts::Guard>> guard(std::filesystem::path, bool is_in_use) override {
    world_.guarded.push_back(is_in_use);
    if (world_.guard_error) co_return fail(*world_.guard_error);
    mounts::Guard guard = world_.guard;
    guard.is_ours = guard.is_ours || is_in_use;
    co_return guard;
  }
  asio::awaitable<Result<std::string>> unmount(OwnMount mount, mounts::Unmount how) override {
    std::filesystem::path target = mount.target();
    auto done = co_await remove(std::move(target), how);
    co_return done;
  }
  asio::awaitable<Result<std::string>> remove(std::filesystem::path target, mounts::Unmount how) {
    const bool is_plain = how == mounts::Unmount::Plain;
    world_.touched.emplace_back(is_plain ? "unmount" : how == mounts::Unmount::Force ? "force" : "detach");
    world_.while_unmounting();
    if (is_plain && world_.unmount_takes.count() > 0) {
      asio::steady_timer timer(co_await asio::this_coro::executor, world_.unmount_takes);
      co_await timer.async_wait(asio::use_awaitable);
    }
    if (world_.unmount_error) co_return fail(*world_.unmount_error);
    const mounts::Mount* top = mounts::mounted_at(world_.mounts, target);
    if (top != nullptr) world_.mounts.erase(world_.mounts.begin() + (top - world_.mounts.data()));
    co_return is_plain ? "" : world_.users;
  }
  asio::awaitable<Result<std::string>> users(std::filesystem::path) override { co_return world_.open_files; }
  asio::awaitable<Result<mounts::Closed>> publish(Remount mount, mounts::AfterPublish then) override {
    world_.touched.emplace_back("publish");
    world_.published_alone = mount.alone;
    world_.while_publishing();
    // Lets watching coroutines run in between.
    for (unsigned turn = 0; turn < world_.publish_takes; ++turn) co_await asio::post(asio::use_awaitable);
    if (world_.publish_error) co_return fail(*world_.publish_error);
    const std::uint64_t before = world_.published ? world_.published->generation : 0;
    world_.published = mounts::Published{before + 1, FakeWorld::kNode, "2026-11-22T05:00:00Z"};
    ++world_.superblock.stamp;
    if (then == mounts::AfterPublish::ReadOnly || !world_.not_writable.empty()) {
      set_mounts("ro,noatime");
      world_.pinned->is_published = true;
      world_.pinned->stamp = world_.superblock.stamp;
    }
    co_return mounts::Closed{*world_.published, world_.superblock.stamp, world_.not_writable};
  }
  asio::awaitable<Result<>> make_writable(Remount) override {
    world_.touched.emplace_back("make writable");
    if (world_.writable_error) co_return fail(*world_.writable_error);
    world_.pinned->is_published = false;
    set_mounts("rw,noatime");
    for (mounts::Mount& mounted : world_.mounts) mounted.super_options = "rw";
    ++world_.superblock.stamp;
    co_return Result<>{};
  }
  const Result<std::vector<mounts::Mount>>& mount_table() override {
    table_ = world_.mounts;
    if (!world_.mount_table_readable) table_ = fail(Errc::Failed, "mountinfo can't be read");
    return table_;
  }

 private:
  void set_mounts(const std::string& options) {
    for (mounts::Mount& mounted : world_.mounts) mounted.options = options;
  }
  FakeWorld& world_;
  Result<std::vector<mounts::Mount>> table_;
};

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(FakeWorld& world) : world_(world) {}

  asio::awaitable<Result<mounts::Superblock>> read_superblock(std::string) override {
    world_.touched.emplace_back("superblock");
    if (world_.superblock_error) co_return fail(*world_.superblock_error);
    co_return world_.superblock;
  }
  asio::awaitable<Result<ProbeAnswer>> probe(ProbeRequest request) override {
    world_.touched.emplace_back("probe");
    const bool is_silent = world_.silent_probes > 0;
    if (is_silent) --world_.silent_probes;
    world_.while_probing();
    if (is_silent || !world_.answers) co_return fail(Errc::TimedOut, "no answer");
    ProbeAnswer answer;
    answer.superblock = world_.superblock;
    answer.superblock.read_us = world_.probe_us;
    answer.shut_down = request.device.empty() && world_.shut_down;
    if (request.keep_reservation) answer.holding = *nvmetcp::keep_reservation(commands_, FakeWorld::kUs);
    for (unsigned turn = 0; turn < world_.probe_takes; ++turn) co_await asio::post(asio::use_awaitable);
    co_return answer;
  }
  asio::awaitable<Result<mounts::MountedState>> mounted_state(std::filesystem::path target,
                                                              mounts::MountNumbers seen) override {
    const mounts::Mount* top = mounts::mounted_at(world_.mounts, target);
    if (top == nullptr || top->id != seen.id)
      co_return fail(Errc::Refused, "another file system is mounted there");
    if (!world_.mount_answers) co_return fail(Errc::TimedOut, "no answer");
    world_.while_confirming();
    co_return mounts::MountedState{world_.shut_down, world_.mounted_uuid, world_.superblock.damage,
                                   world_.published, world_.is_written_since};
  }
  asio::awaitable<Result<>> flush(OwnMount) override {
    world_.touched.emplace_back("flush");
    world_.while_flushing();
    while (world_.flush_waits && world_.count("stop writing") == 0) {
      asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(1));
      co_await timer.async_wait(asio::use_awaitable);
    }
    if (world_.flush_waits) co_return fail(Errc::Failed, "flushing: Input/output error");
    co_return Result<>{};
  }
  asio::awaitable<Result<>> stop_writing(OwnMount, std::string) override {
    world_.touched.emplace_back("stop writing");
    if (world_.stop_error) co_return fail(*world_.stop_error);
    co_return Result<>{};
  }
  std::optional<std::uint64_t> completed_io(const std::string& device,
                                            const std::vector<std::string>&) override {
    ++world_.io_looks;
    if (device.empty()) return std::nullopt;
    return completed_ += world_.io_per_look;
  }
  asio::awaitable<Result<nvmetcp::ReservationState>> reserve(ReservationRequest request) {
    if (request.act == ReservationAct::Look)
      co_return nvmetcp::look_at_reservation(commands_, FakeWorld::kUs);
    world_.while_reserving();
    if (request.act == ReservationAct::Hold) co_return nvmetcp::hold_reservation(commands_, FakeWorld::kUs);
    if (request.act == ReservationAct::Take) co_return nvmetcp::take_reservation(commands_, FakeWorld::kUs);
    const bool released = *nvmetcp::release_reservation(commands_, FakeWorld::kUs) == Change::Done;
    if (released) world_.touched.emplace_back("release");
    co_return nvmetcp::look_at_reservation(commands_, FakeWorld::kUs);
  }
  bool has_stuck_worker() override { return world_.stuck; }

 private:
  FakeWorld& world_;
  std::uint64_t completed_ = 0;
  sim::SimulatedReservations commands_{world_.reservations, FakeWorld::kHostId};
};

}  // namespace spark::volumes
