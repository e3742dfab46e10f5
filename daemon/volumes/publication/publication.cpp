#include "daemon/volumes/publication/publication.hpp"

#include <utility>

#include "daemon/log.hpp"
#include "daemon/timer.hpp"
#include "daemon/volumes/release_step.hpp"

namespace spark::volumes {

// Checks that no other change of the mount is in progress, and that it is ready.
Result<> Publication::check_can_change() const {
  const Status& status = volume_.status;
  const std::string name = "volume " + volume_.settings.name;
  if (!volume_.settings.nvme || volume_.settings.access != config::Access::Exclusive) {
    return fail(Errc::Refused, name + " can't be published here: this host only reads it",
                "publish it on the host that has it with `access: exclusive`");
  }
  if (auto settled = check_not_changing(volume_); !settled) return settled;
  if (status.state == State::Ready && volume_.is_left()) return fail(asked_down(volume_));
  if (status.state == State::Ready && volume_.checked) return {};
  return fail(Errc::Unavailable,
              name + " is " + to_string(status.state) + (status.reason.empty() ? "" : ": " + status.reason),
              "`spark-stage wait " + volume_.settings.name + "` ends when it is ready");
}

asio::awaitable<Result<mounts::Published>> Publication::publish(mounts::AfterPublish then) {
  const auto self = volume_.keep_alive();
  if (auto can = check_can_change(); !can) co_return can.take_error();
  if (volume_.checked->is_writer) {
    if (auto flushed = co_await flush(); !flushed) co_return flushed.take_error();
    if (auto can = check_can_change(); !can) co_return can.take_error();
  }
  if (is_published(volume_) && volume_.checked->published) {  // no writes since
    const mounts::Published same = *volume_.checked->published;
    if (then == mounts::AfterPublish::Writable) {
      if (auto writable = co_await make_writable(); !writable) co_return writable.take_error();
    }
    co_return same;
  }
  const CheckedMountPtr mount = volume_.checked;
  note_change(*mount, true);
  if (auto ended = co_await forget_wish(); !ended) {
    note_change(*mount, false);
    co_return ended.take_error();
  }
  co_await fence_.forget_record();
  Remount closing = remount_of(*mount);
  const auto closed = co_await volume_.seams.mounts.publish(std::move(closing), then);
  // It may be closed all the same, for example if another mount hides it by then. Its stamp is not known, so
  // that it counts as older than what is on the disk.
  const bool is_closed = look_at_place(volume_.seams, volume_.settings).is_own_closed;
  const bool is_unchanged = !closed && !is_closed && closed.error().kind == Errc::Unavailable;
  if (!is_unchanged) co_await fence_.forget_held();
  if (!closed && is_closed) mount->is_writer = false;
  if (closed) {
    mount->published = closed->published;
    mount->stamp = closed->stamp;
    mount->is_writer = then == mounts::AfterPublish::Writable && closed->not_writable.empty();
  }
  note_change(*mount, false);
  if (!closed) co_return closed.take_error();
  if (!closed->not_writable.empty())
    co_return fail(Errc::Failed,
                   "volume " + volume_.settings.name + " is published as generation " +
                       std::to_string(closed->published.generation) +
                       ", and stays read-only: " + closed->not_writable,
                   "`sudo spark-stage volumes up " + volume_.settings.name + "` makes it writable");
  co_return closed->published;
}

// The long part: programs may write, and the fence is watched as ever. It goes on if the volume is no longer
// ready, but nothing waits for it.
asio::awaitable<Result<>> Publication::flush() {
  const auto timer = std::make_shared<Timer>(volume_.executor);
  const auto flushed = start_flush(volume_, volume_.checked->mount, [timer] { timer->cancel(); });
  while (!*flushed) {
    if (auto can = check_can_change(); !can) co_return can;
    timer->expires_after(volume_.timings.watch_closely);
    co_await timer->wait();
  }
  co_return std::move(**flushed);
}

// For the next daemon: a publication that is not known yet may appear only then.
asio::awaitable<void> Publication::record_wish() {
  const auto pinned = volume_.seams.store.pinned_identity().value_or(FilesystemIdentity{});
  json::object wish{{"uuid", pinned.uuid}};
  const bool is_mounted = volume_.look_at_mount() != Place::Empty;
  if (!is_mounted || pinned.uuid.empty() || volume_.seams.store.saved(Record::ToWrite) == wish) co_return;
  const auto recorded = co_await volume_.seams.store.save(Record::ToWrite, std::move(wish));
  if (!recorded) log::survived(recorded.error());
}

// Otherwise the next daemon would end the publication. It needs no room.
asio::awaitable<Result<>> Publication::forget_wish() {
  volume_.status.is_to_write = false;
  if (volume_.seams.store.saved(Record::ToWrite).empty()) co_return Result<>{};
  co_return co_await volume_.seams.store.save(Record::ToWrite, {});
}

// An attempt ends as what it began.
asio::awaitable<void> Publication::wait_for_reader() {
  Timer timer(volume_.executor);
  while (volume_.attempts.reads && !volume_.stopped) {
    timer.expires_after(volume_.timings.watch_closely);
    co_await timer.wait();
  }
}

asio::awaitable<Result<>> Publication::make_writable() {
  const auto self = volume_.keep_alive();
  if (volume_.settings.access != config::Access::Exclusive) co_return Result<>{};
  for (;;) {
    co_await wait_for_reader();
    if (volume_.stopped)  // its successor has read the record already
      co_return fail(Errc::Unavailable, "volume " + volume_.settings.name + " was changed by a reload",
                     "ask again");
    volume_.status.is_to_write = !is_published(volume_);
    if (volume_.status.is_to_write) {
      co_await record_wish();
      co_return Result<>{};
    }
    if (volume_.look_at_mount() != Place::Empty) break;
    auto identity = volume_.seams.store.pinned_identity();  // the next attempt mounts it for writing
    if (!identity) co_return identity.take_error();
    identity->is_published = false;
    auto recorded = co_await volume_.seams.store.pin(std::move(*identity));
    if (!recorded) co_return recorded;
  }
  if (auto can = check_can_change(); !can) co_return can;
  const CheckedMountPtr mount = volume_.checked;
  note_change(*mount, true);
  co_await fence_.forget_held();
  auto writable = co_await fence_.check_still_ours(mount);
  Remount opening = remount_of(*mount);  // with the fence that was found
  if (writable) writable = co_await volume_.seams.mounts.make_writable(std::move(opening));
  mount->is_writer = mount->is_writer || writable;
  volume_.status.is_to_write = writable.has_value();
  note_change(*mount, false);
  (void)volume_.look_at_standing();  // a failure after the remount leaves it writable
  co_return writable;
}

// Its status says so: multi-mount protection alone may take minutes.
void Publication::note_change(CheckedMount& mount, bool is_changing) {
  mount.is_changing_writing = is_changing;
  ++mount.changes;
  if (volume_.status.state == State::Ready) volume_.set_state(State::Ready, ready_reason());
  volume_.wake();
}

Remount Publication::remount_of(const CheckedMount& mount) const {
  const config::NvmeSource& source = *volume_.settings.nvme;
  Remount remount{mount.mount, mount.device, mount.uuid, mount.is_writer ? 0 : mount.stamp};
  const bool is_held = volume_.status.fence.reservation;  // at the last look
  if (is_held) remount.reservation = {source.subsystem, source.nsid};
  remount.alone = wants_fence(volume_.settings) && !is_held;
  return remount;
}

void Publication::look_for_writers(CheckedMount& mount, const mounts::Superblock& seen) {
  if (mount.is_writer || mount.is_changing_writing) {
    mount.foreign_writes = mount.is_outdated = false;
    return;
  }
  if (mount.stamp == 0) mount.stamp = seen.stamp;
  const bool moved = seen.stamp != 0 && seen.stamp != mount.stamp;
  mount.foreign_writes = seen.being_written || moved;
  mount.is_outdated = moved && !seen.being_written;
  if (mount.is_outdated) return;
  leaving_.reset();
  next_leave_ = {};
  users_.clear();
}

asio::awaitable<bool> Publication::leave_outdated() {
  if (volume_.clock.steady() < next_leave_) co_return false;
  const CheckedMountPtr mount = volume_.checked;
  if (!mount) co_return true;
  const auto unmounted = co_await volume_.seams.mounts.unmount(mount->mount, mounts::Unmount::Plain);
  if (unmounted) volume_.forget_mount();
  next_leave_ = volume_.clock.steady() + leaving_.next();
  const bool was_in_use = !users_.empty();
  users_ = unmounted ? "" : unmounted.error().what;
  // In use by other programs now: not worth a log entry.
  if (was_in_use && !unmounted) volume_.status.reason = ready_reason();
  co_return unmounted.has_value();
}

std::string Publication::reader_reason() const {
  if (!volume_.checked->is_outdated) return "being written by another host: reads here may return torn data";
  return "written since it was mounted here: remounted as soon as no process uses it" +
         (users_.empty() ? "" : " (" + users_ + ")");
}

std::string Publication::ready_reason() const {
  if (volume_.checked && volume_.checked->is_changing_writing)
    return "being published, or made writable again: until then writes to it may fail";
  if (volume_.status.mounted().foreign_writes) return reader_reason();
  if (!is_published(volume_)) return "";
  const auto& published = volume_.status.mounted().published;
  return "published" + (published ? " as generation " + std::to_string(published->generation) : "") +
         ": read-only until `spark-stage volumes up " + volume_.settings.name + "`";
}

}  // namespace spark::volumes
