// The steps of an NFS volume: mounted, and asked now and then whether its server still answers.
#include "daemon/volumes/volume.hpp"

namespace spark::volumes {

// Mounted before: by us, or by somebody with another access in mind.
Result<> Volume::check_adopted_nfs() {
  const auto mount = actions_->mount_at(settings_.mount);
  if (!mount) return mount.take_error();
  const bool wants_read_only = settings_.access == config::Access::ReadOnly;
  if (!*mount || mounts::is_read_only(**mount) == wants_read_only) return {};
  return fail(Errc::Refused,
              settings_.mount.native() + " is mounted " + (wants_read_only ? "read-write" : "read-only") +
                  " already, and not by spark-stage",
              "unmount it (and remove its fstab line), then it is mounted as configured by itself");
}

asio::awaitable<Result<>> Volume::bring_up_nfs() {
  const std::string source = settings_.nfs->host + ":" + settings_.nfs->path;
  const Place place = look_at_mount();
  if (place == Place::Broken) {
    if (auto cleared = co_await clear_broken_mount(); !cleared) co_return cleared;
  }
  if (place == Place::Ours) {
    if (auto right = check_adopted_nfs(); !right) co_return right;
  } else {
    set_state(working_state(State::Mounting), "mounting " + source + " on " + settings_.mount.native());
    mounts::MountRequest request;
    request.source = source;
    request.target = settings_.mount;
    request.type = "nfs";
    request.read_only = settings_.access == config::Access::ReadOnly;
    request.options = settings_.options;
    request.may_hide_files = guard_.is_ours;
    FilesystemIdentity nothing_to_pin;
    const auto done = co_await actions_->mount(std::move(request), std::move(nothing_to_pin));
    if (!done) co_return fail(done.error());
    healed_by_us_ = true;
  }
  status_.device = source;
  status_.filesystem_type = "nfs";
  co_return Result<>{};
}

}  // namespace spark::volumes
