#include "daemon/volumes/publication/publication.hpp"

#include <utility>

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
  if (volume_.checked && volume_.checked->is_changing_writing)
    return fail(Errc::Unavailable, name + " is being published, or made writable, already", "try again");
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
  if (is_published(volume_) && volume_.status.published) {  // no writes since
    if (then == mounts::AfterPublish::Writable) {
      if (auto writable = co_await make_writable(); !writable) co_return writable.take_error();
    }
    co_return *volume_.status.published;
  }
  const CheckedMountPtr mount = volume_.checked;
  note_change(*mount, true);
  co_await fence_.forget_held();
  const auto closed =
      co_await volume_.seams.mounts.publish(mount->mount, mount->device, then, is_alone(*mount));
  if (closed) {
    volume_.status.published = closed->published;
    mount->stamp = closed->stamp;
    mount->is_writer = then == mounts::AfterPublish::Writable;
  }
  note_change(*mount, false);
  if (!closed) co_return closed.take_error();
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

asio::awaitable<Result<>> Publication::make_writable() {
  const auto self = volume_.keep_alive();
  if (!is_published(volume_)) co_return Result<>{};
  if (volume_.look_at_mount() == Place::Empty) {  // it will be mounted for writing
    auto identity = volume_.seams.store.pinned_identity();
    if (!identity) co_return identity.take_error();
    identity->is_published = false;
    co_return co_await volume_.seams.store.pin(std::move(*identity));
  }
  if (auto can = check_can_change(); !can) co_return can;
  const CheckedMountPtr mount = volume_.checked;
  note_change(*mount, true);
  co_await fence_.forget_held();
  auto writable = co_await fence_.check_still_ours(mount);
  if (writable)
    writable = co_await volume_.seams.mounts.make_writable(mount->mount, mount->device, is_alone(*mount));
  // A failure after the remount leaves it writable.
  const Standing now = volume_.look_at_standing();
  const bool is_reached = now.place == Place::Ours && *now.own == mount->mount;
  mount->is_writer = mount->is_writer || writable || (is_reached && !mounts::is_read_only(*now.top));
  note_change(*mount, false);
  co_return writable;
}

// Its status says so: multi-mount protection alone may take minutes.
void Publication::note_change(CheckedMount& mount, bool is_changing) {
  mount.is_changing_writing = is_changing;
  ++mount.changes;
  if (volume_.status.state == State::Ready) volume_.set_state(State::Ready, ready_reason());
  volume_.wake();
}

// Multi-mount protection is the only fence.
bool Publication::is_alone(const CheckedMount& mount) const {
  return wants_fence(volume_.settings) && !mount.fence.reservation;
}

void Publication::look_for_writers(CheckedMount& mount, const ProbeAnswer& answer) {
  if (mount.is_writer || mount.is_changing_writing) {
    volume_.status.foreign_writes = mount.is_outdated = false;
    return;
  }
  if (mount.stamp == 0) mount.stamp = answer.stamp;
  const bool moved = answer.stamp != 0 && answer.stamp != mount.stamp;
  volume_.status.foreign_writes = answer.being_written || moved;
  mount.is_outdated = moved && !answer.being_written;
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
  if (!volume_.status.foreign_writes) return "";
  if (!volume_.checked || !volume_.checked->is_outdated)
    return "being written by another host: reads here may return torn data";
  return "written since it was mounted here: remounted as soon as no process uses it" +
         (users_.empty() ? "" : " (" + users_ + ")");
}

std::string Publication::ready_reason() const {
  if (volume_.checked && volume_.checked->is_changing_writing)
    return "being published, or made writable again: until then writes to it may fail";
  if (volume_.status.foreign_writes) return reader_reason();
  if (!is_published(volume_)) return "";
  const auto& published = volume_.status.published;
  return "published" + (published ? " as generation " + std::to_string(published->generation) : "") +
         ": read-only until `spark-stage volumes up " + volume_.settings.name + "`";
}

}  // namespace spark::volumes
