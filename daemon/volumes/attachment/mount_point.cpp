#include "daemon/volumes/attachment/mount_point.hpp"

#include <utility>

namespace spark::volumes {

asio::awaitable<void> MountPoint::guard() {
  const Place place = volume_.look_at_mount();
  if (place == Place::Covered) co_return;  // the path leads to another file system's folder
  const bool is_in_use = is_own(place);
  auto guard = co_await volume_.seams.mounts.guard(volume_.settings.mount, is_in_use);
  if (!guard && guard.error().kind == Errc::Refused) co_return;  // the mount reports it too
  if (!guard) guard = mounts::Guard{guard_.is_ours, guard.error().message(), {}};
  guard_ = std::move(*guard);
  volume_.status.bare = bare_mount_point(volume_.settings, guard_);
}

asio::awaitable<Result<>> MountPoint::clear_broken() {
  const Standing standing = volume_.look_at_standing();
  if (standing.place != Place::Broken) co_return Result<>{};
  const std::string fence_lost = volume_.checked ? volume_.checked->fence_lost : "";
  const bool is_kept = kept_ && kept_->mount == *standing.own && volume_.attempts.failed;
  if (is_kept && fence_lost.empty() && volume_.clock.steady() < kept_->until) co_return fail(kept_->why);
  if (!fence_lost.empty())
    volume_.set_state(State::Refused, fence_lost);
  else if (!is_kept)
    volume_.set_state(State::Lost,
                      "unmounting the broken file system from " + volume_.settings.mount.native());
  const auto unmounted = co_await volume_.seams.mounts.unmount(*standing.own, mounts::Unmount::Plain);
  if (unmounted) {
    kept_.reset();
    volume_.forget_mount();
    co_return Result<>{};
  }
  Error error = unmounted.error();
  if (!fence_lost.empty()) {
    error.kind = Errc::Refused;
  } else {
    // Elsewhere too, for example at a former mount point, after a reload that a crash interrupted: a person
    // has to end that. Otherwise it is temporary: it ends when its users end.
    const auto all = mounts_of(volume_.seams, standing.own->device_number());
    const bool is_twice = all && all->size() > 1;
    if (error.kind == Errc::Refused && !is_twice) error.kind = Errc::Unavailable;
  }
  const std::string stays = "the dead mount stays";
  Error why = fail_with(std::move(error), fence_lost.empty() ? stays : fence_lost + "; " + stays).value();
  if (!is_kept) leaving_.reset();
  kept_ = Kept{*standing.own, why, volume_.clock.steady() + leaving_.next()};
  co_return fail(std::move(why));
}

std::optional<mounts::DeadMount> MountPoint::dead_mount() {
  const Standing standing = look_at_place(volume_.seams, volume_.settings);
  if (standing.place != Place::Dead) return std::nullopt;
  return mounts::DeadMount{standing.top->device_number, may_detach(volume_.settings, standing.place),
                           standing.own->id()};
}

}  // namespace spark::volumes
