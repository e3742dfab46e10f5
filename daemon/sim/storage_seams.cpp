#include "daemon/sim/storage_seams.hpp"

#include "daemon/sim/waiting.hpp"

namespace spark::sim {
namespace {

const nvmetcp::LocalRegistrant kUs{kHostId, 1, 0};

Error in_use(const std::filesystem::path& target, const std::string& users) {
  return {Errc::Refused, "unmounting " + target.native() + ": it is in use by " + users,
          "end that, then try again"};
}

}  // namespace

asio::awaitable<Result<volumes::Mounted>> SimulatedMounts::mount(mounts::MountRequest request,
                                                                 volumes::FilesystemIdentity identity) {
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
asio::awaitable<Result<mounts::Guard>> SimulatedMounts::guard(std::filesystem::path /*mount_point*/,
                                                              bool /*is_in_use*/) {
  mounts::Guard guard;
  guard.is_ours = true;
  co_return guard;
}

asio::awaitable<Result<std::string>> SimulatedMounts::unmount(volumes::OwnMount mount, mounts::Unmount how) {
  const Storage& storage = world_.targets().storage_of(volume_);
  co_await wait_for(storage.mounts, pace_);
  const std::filesystem::path& target = mount.target();
  if (mounts::mounted_at(world_.mounts(), target) == nullptr) co_return "";
  if (how == mounts::Unmount::Plain && !storage.users.empty()) co_return fail(in_use(target, storage.users));
  world_.unmount(target);
  co_return storage.users;
}

asio::awaitable<Result<std::string>> SimulatedMounts::users(std::filesystem::path /*target*/) {
  co_return world_.targets().storage_of(volume_).users;
}

asio::awaitable<Result<mounts::Closed>> SimulatedMounts::publish(volumes::Remount mount,
                                                                 mounts::AfterPublish then) {
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

asio::awaitable<Result<>> SimulatedMounts::make_writable(volumes::Remount mount) {
  const auto identity = store_.pinned_identity().value_or(volumes::FilesystemIdentity{});
  auto pinned = co_await pin_published(false, identity.stamp);
  if (pinned) world_.set_read_only(mount.mount.target(), false);
  co_return pinned;
}

asio::awaitable<Result<>> SimulatedMounts::pin_published(bool is_published, std::uint64_t stamp) {
  auto identity = store_.pinned_identity().value_or(volumes::FilesystemIdentity{});
  identity.is_published = is_published;
  identity.stamp = stamp;
  co_return co_await store_.pin(std::move(identity));
}

const Result<std::vector<mounts::Mount>>& SimulatedMounts::mount_table() {
  table_ = world_.mounts();
  return table_;
}

asio::awaitable<Result<mounts::Superblock>> SimulatedDevice::read_superblock(std::string device) {
  const Storage& storage = world_.targets().storage_of(volume_);
  if (device != "/dev/" + storage.device) co_return fail(Errc::NotFound, "there is no " + device);
  if (auto answers = co_await wait_for_read(storage, world_.is_live(storage)); !answers)
    co_return answers.take_error();
  co_return superblock_of(storage);
}

asio::awaitable<Result<volumes::ProbeAnswer>> SimulatedDevice::probe(volumes::ProbeRequest request) {
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

asio::awaitable<Result<mounts::MountedState>> SimulatedDevice::mounted_state(std::filesystem::path /*target*/,
                                                                             mounts::MountNumbers /*seen*/) {
  const Storage& storage = world_.targets().storage_of(volume_);
  co_return mounts::MountedState{storage.is_shut_down, storage.mounted_uuid, "", storage.published};
}

asio::awaitable<Result<>> SimulatedDevice::flush(volumes::OwnMount /*mount*/) {
  co_return Result<>{};
}

asio::awaitable<Result<>> SimulatedDevice::stop_writing(volumes::OwnMount /*mount*/, std::string /*device*/) {
  world_.targets().storage_of(volume_).is_shut_down = true;
  co_return Result<>{};
}

asio::awaitable<Result<nvmetcp::ReservationState>> SimulatedDevice::reserve(
    volumes::ReservationRequest request) {
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

}  // namespace spark::sim
