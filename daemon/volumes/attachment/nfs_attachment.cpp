#include "daemon/volumes/attachment/nfs_attachment.hpp"

#include <algorithm>
#include <thread>

namespace spark::volumes {
namespace {

// Already mounted: by this program, or by another one, possibly with another access mode.
Result<> check_adopted(VolumeContext& volume) {
  const auto mount = volume.look_at_standing().top;
  const bool wants_read_only = volume.settings.access == config::Access::ReadOnly;
  if (!mount || mounts::is_read_only(*mount) == wants_read_only) return {};
  return fail(mounted_otherwise(volume.settings, wants_read_only));
}

asio::awaitable<Result<>> mount_export(VolumeContext& volume, bool may_hide_files) {
  const config::Volume& settings = volume.settings;
  const std::string source = settings.nfs->host + ":" + settings.nfs->path;
  volume.say(State::Mounting, "mounting " + source + " on " + settings.mount.native());
  mounts::MountRequest request;
  request.source = source;
  request.target = settings.mount;
  request.type = "nfs";
  request.read_only = settings.access == config::Access::ReadOnly;
  request.options = with_connections(settings.options, std::thread::hardware_concurrency());
  request.may_hide_files = may_hide_files;
  FilesystemIdentity nothing_to_pin;
  const auto done = co_await volume.seams.mounts.mount(std::move(request), std::move(nothing_to_pin));
  if (!done) co_return done.take_error();
  volume.forget_mount();  // of the one before
  volume.attempts.healed_by_us = true;
  co_return Result<>{};
}

}  // namespace

std::vector<std::string> with_connections(std::vector<std::string> options, unsigned cpus) {
  constexpr unsigned kMost = 8;
  const bool is_chosen = std::any_of(options.begin(), options.end(), [](const std::string& option) {
    return option.starts_with("nconnect=") || option.starts_with("proto=") || option == "udp" ||
           option == "rdma";
  });
  if (!is_chosen && cpus > 1) options.push_back("nconnect=" + std::to_string(std::min(kMost, cpus)));
  return options;
}

asio::awaitable<Result<>> bring_up_nfs(VolumeContext& volume, MountPoint& mount_point) {
  const Place place = volume.look_at_mount();
  if (auto cleared = co_await mount_point.clear_broken(); !cleared) co_return cleared;
  if (place == Place::Ours) {
    if (auto right = check_adopted(volume); !right) co_return right;
  } else {
    if (auto mounted = co_await mount_export(volume, mount_point.may_hide_files()); !mounted)
      co_return mounted;
  }
  volume.status.device = volume.settings.nfs->host + ":" + volume.settings.nfs->path;
  volume.status.filesystem_type = "nfs";
  const Standing standing = volume.look_at_standing();
  if (standing.own && !volume.checked) volume.checked = std::make_shared<CheckedMount>(*standing.own);
  co_return Result<>{};
}

}  // namespace spark::volumes
