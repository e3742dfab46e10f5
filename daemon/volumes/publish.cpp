// Publishing: a writer closes its file system, and whoever reads it gets that state, whole. It stays closed
// until a person wants to write again.
#include "daemon/volumes/volume.hpp"

namespace spark::volumes {

bool Volume::is_published() const {
  return settings_.access == config::Access::Exclusive &&
         actions_->pinned_identity().value_or(FilesystemIdentity{}).is_published;
}

bool Volume::is_reader() const {
  return settings_.nvme && (settings_.access == config::Access::ReadOnly || is_published());
}

// Nothing else is done to the mount meanwhile, and it is ready.
Result<> Volume::check_can_change_writing() const {
  const std::string name = "volume " + settings_.name;
  if (!settings_.nvme || settings_.access != config::Access::Exclusive) {
    return fail(Errc::Refused, name + " can't be published here: this host only reads it",
                "publish it on the host that has it with `access: exclusive`");
  }
  if (is_changing_writing_)
    return fail(Errc::Unavailable, name + " is being published, or made writable, already", "try again");
  if (status_.state == State::Ready) return {};
  return fail(
      Errc::Unavailable,
      name + " is " + to_string(status_.state) + (status_.reason.empty() ? "" : ": " + status_.reason),
      "`spark-stage wait " + settings_.name + "` ends when it is ready");
}

asio::awaitable<Result<mounts::Published>> Volume::ask_publish(mounts::AfterPublish then) {
  const auto self = shared_from_this();
  if (auto can = check_can_change_writing(); !can) co_return fail(can.error());
  if (is_published() && status_.published) {  // nothing was written since
    if (then == mounts::AfterPublish::Writable) {
      if (auto writable = co_await ask_writable(); !writable) co_return fail(writable.error());
    }
    co_return *status_.published;
  }
  is_changing_writing_ = true;
  const auto closed = co_await actions_->publish(settings_.mount, status_.device, then, is_alone());
  is_changing_writing_ = false;
  wake();
  if (!closed) co_return fail(closed.error());
  status_.published = closed->published;
  mounted_stamp_ = closed->stamp;
  if (status_.state == State::Ready) set_state(State::Ready, ready_reason());
  co_return closed->published;
}

// Of a published volume; of another there is nothing to do.
asio::awaitable<Result<>> Volume::ask_writable() {
  const auto self = shared_from_this();
  if (!is_published()) co_return Result<>{};
  if (look_at_mount() == Place::Empty) co_return co_await actions_->make_writable(settings_.mount, "", false);
  if (auto can = check_can_change_writing(); !can) co_return can;
  is_changing_writing_ = true;
  auto writable = co_await check_still_ours();
  if (writable) writable = co_await actions_->make_writable(settings_.mount, status_.device, is_alone());
  is_changing_writing_ = false;
  if (writable && status_.state == State::Ready) set_state(State::Ready, ready_reason());
  wake();
  co_return writable;
}

// With the reservation held nobody writes any more; then what is mounted here has to be what is on the disk.
asio::awaitable<Result<>> Volume::check_still_ours() {
  const auto holding = co_await ask_reservation(ReservationAct::Hold);
  if (!holding) co_return fail(holding.error());
  const auto superblock = co_await actions_->read_superblock(status_.device);
  if (!superblock) co_return fail(superblock.error());
  if (holding->hold == nvmetcp::Hold::Theirs) co_return fail(held_elsewhere(*holding, *superblock));
  status_.fence.reservation = holding->hold == nvmetcp::Hold::Ours;
  if (!superblock->damage.empty()) {
    co_return fail(Errc::Refused,
                   "volume " + settings_.name + " stays read-only: " + damaged(superblock->damage));
  }
  if (!superblock->being_written && superblock->stamp == mounted_stamp_) co_return Result<>{};
  co_return fail(Errc::Refused,
                 "volume " + settings_.name + " was published, and another host has written it since",
                 "`spark-stage status` says whether it still does; nothing was changed");
}

std::string Volume::ready_reason() const {
  if (status_.foreign_writes) return reader_reason();
  if (!is_published() || !status_.published) return "";
  return "published as generation " + std::to_string(status_.published->generation) +
         ": read-only until `spark-stage volumes up " + settings_.name + "`";
}

}  // namespace spark::volumes
