// The device, the mount point and the reservation of one volume of a simulated host.
#pragma once

#include "daemon/sim/waiting.hpp"
#include "daemon/sim/world.hpp"
#include "daemon/volumes/seams/device.hpp"
#include "daemon/volumes/seams/mounts.hpp"
#include "daemon/volumes/seams/reservations.hpp"

namespace spark::sim {

namespace asio = boost::asio;

class SimulatedMounts final : public volumes::Mounts {
 public:
  // `store` receives the identities that a mount pins.
  SimulatedMounts(World& world, volumes::VolumeStore& store, const Clock& clock, std::string volume,
                  Duration pace)
      : world_(world), store_(store), clock_(clock), volume_(std::move(volume)), pace_(pace) {}

  asio::awaitable<Result<volumes::Mounted>> mount(mounts::MountRequest request,
                                                  volumes::FilesystemIdentity identity) override {
    const Storage& storage = world_.targets().storage_of(volume_);
    co_await wait_for(storage.mounts, pace_);
    volumes::Mounted mounted;
    if (request.replaces) {
      if (!storage.users.empty() && !request.replaces->detach)
        co_return fail(in_use(request.target, storage.users));
      mounted.users = storage.users;
      world_.unmount(request.target);
    }
    const std::string doing = "mounting " + request.source + " on " + request.target.native();
    const Storage* source = world_.behind(request.source);
    if (source == nullptr || !source->is_offered)
      co_return fail(Errc::Unavailable, doing + ": it is not there any more");
    if (auto answers = co_await wait_for_read(storage, world_.is_live(storage)); !answers)
      co_return fail_with(std::move(answers.error()), doing);
    if (!request.uuid.empty() && request.uuid != source->uuid)
      co_return fail(Errc::Unavailable, doing + ": it holds another file system by now");
    world_.mount(request);
    if (!identity.uuid.empty()) {
      auto pinned = co_await store_.pin(std::move(identity));
      if (!pinned) co_return pinned.take_error();
    }
    co_return mounted;
  }

  // The folder is not created or changed, and programs may write to it.
  asio::awaitable<Result<mounts::Guard>> guard(std::filesystem::path /*mount_point*/,
                                               bool /*is_in_use*/) override {
    mounts::Guard guard;
    guard.is_ours = true;
    co_return guard;
  }

  asio::awaitable<Result<std::string>> unmount(volumes::OwnMount mount, mounts::Unmount how) override {
    const Storage& storage = world_.targets().storage_of(volume_);
    co_await wait_for(storage.mounts, pace_);
    const std::filesystem::path& target = mount.target();
    if (mounts::mounted_at(world_.mounts(), target) == nullptr) co_return "";
    if (how == mounts::Unmount::Plain && !storage.users.empty())
      co_return fail(in_use(target, storage.users));
    world_.unmount(target);
    co_return storage.users;
  }

  asio::awaitable<Result<std::string>> users(std::filesystem::path /*target*/) override {
    co_return world_.targets().storage_of(volume_).users;
  }

  asio::awaitable<Result<mounts::Closed>> publish(volumes::Remount mount,
                                                  mounts::AfterPublish then) override {
    Storage& storage = world_.targets().storage_of(volume_);
    co_await wait_for(storage.mounts, pace_);
    const std::filesystem::path& target = mount.mount.target();
    if (!storage.users.empty())
      co_return fail(Errc::Refused,
                     "publishing " + target.native() +
                         ": a program has a file open for writing there (in use by " + storage.users + ")",
                     "end that, then try again");
    const std::uint64_t before = storage.published ? storage.published->generation : 0;
    storage.published = mounts::Published{before + 1, kNodeName, rfc3339(clock_.wall())};
    world_.set_read_only(target, true);
    if (then == mounts::AfterPublish::Writable) {
      world_.set_read_only(target, false);
    } else if (auto pinned = co_await pin_published(true, storage.stamp); !pinned) {
      co_return pinned.take_error();
    }
    co_return mounts::Closed{*storage.published, storage.stamp, ""};
  }

  asio::awaitable<Result<>> make_writable(volumes::Remount mount) override {
    const auto identity = store_.pinned_identity().value_or(volumes::FilesystemIdentity{});
    auto pinned = co_await pin_published(false, identity.stamp);
    if (pinned) world_.set_read_only(mount.mount.target(), false);
    co_return pinned;
  }

  const Result<std::vector<mounts::Mount>>& mount_table() override {
    table_ = world_.mounts();
    return table_;
  }

 private:
  static Error in_use(const std::filesystem::path& target, const std::string& users) {
    return {Errc::Refused, "unmounting " + target.native() + ": it is in use by " + users,
            "end that, then try again"};
  }

  asio::awaitable<Result<>> pin_published(bool is_published, std::uint64_t stamp) {
    auto identity = store_.pinned_identity().value_or(volumes::FilesystemIdentity{});
    identity.is_published = is_published;
    identity.stamp = stamp;
    co_return co_await store_.pin(std::move(identity));
  }

  World& world_;
  volumes::VolumeStore& store_;
  const Clock& clock_;
  std::string volume_;
  Duration pace_;
  Result<std::vector<mounts::Mount>> table_;  // as last read
};

class SimulatedDevice final : public volumes::Device {
 public:
  SimulatedDevice(World& world, std::string volume) : world_(world), volume_(std::move(volume)) {}

  std::optional<std::uint64_t> completed_io(const std::string& /*device*/,
                                            const std::vector<std::string>& /*controllers*/) override {
    return std::nullopt;
  }

  bool has_stuck_worker() override { return false; }

  asio::awaitable<Result<mounts::Superblock>> read_superblock(std::string device) override {
    const Storage& storage = world_.targets().storage_of(volume_);
    if (device != "/dev/" + storage.device) co_return fail(Errc::NotFound, "there is no " + device);
    if (auto answers = co_await wait_for_read(storage, world_.is_live(storage)); !answers)
      co_return answers.take_error();
    co_return superblock_of(storage);
  }

  asio::awaitable<Result<volumes::ProbeAnswer>> probe(volumes::ProbeRequest request) override {
    Storage& storage = world_.targets().storage_of(volume_);
    if (auto answers = co_await wait_for_read(storage, world_.is_live(storage)); !answers)
      co_return answers.take_error();
    volumes::ProbeAnswer answer;
    answer.superblock = superblock_of(storage);
    answer.superblock.read_us = static_cast<double>(std::chrono::microseconds(*storage.latency).count());
    answer.shut_down = request.device.empty() && storage.is_shut_down;
    if (!request.keep_reservation) co_return answer;
    SimulatedReservations commands(storage.reservations, kHostId);
    const auto holding = nvmetcp::keep_reservation(commands, kUs);
    if (!holding) co_return fail(holding.error());
    answer.holding = *holding;
    co_return answer;
  }

  asio::awaitable<Result<mounts::MountedState>> mounted_state(std::filesystem::path /*target*/,
                                                              mounts::MountNumbers /*seen*/) override {
    const Storage& storage = world_.targets().storage_of(volume_);
    co_return mounts::MountedState{storage.is_shut_down, storage.mounted_uuid, "", storage.published};
  }

  asio::awaitable<Result<>> flush(volumes::OwnMount /*mount*/) override { co_return Result<>{}; }

  asio::awaitable<Result<>> stop_writing(volumes::OwnMount /*mount*/, std::string /*device*/) override {
    world_.targets().storage_of(volume_).is_shut_down = true;
    co_return Result<>{};
  }

  asio::awaitable<Result<nvmetcp::ReservationState>> reserve(volumes::ReservationRequest request) {
    SimulatedReservations commands(world_.targets().storage_of(volume_).reservations, kHostId);
    switch (request.act) {
      case volumes::ReservationAct::Hold:
        co_return nvmetcp::hold_reservation(commands, kUs);
      case volumes::ReservationAct::Take:
        co_return nvmetcp::take_reservation(commands, kUs);
      case volumes::ReservationAct::Release: {
        const auto released = nvmetcp::release_reservation(commands, kUs);
        if (!released) co_return fail(released.error());
        break;
      }
      case volumes::ReservationAct::Look:
        break;
    }
    co_return nvmetcp::look_at_reservation(commands, kUs);
  }

 private:
  static inline const nvmetcp::LocalRegistrant kUs{kHostId, 1, 0};

  World& world_;
  std::string volume_;
};

}  // namespace spark::sim
