#include "daemon/volumes/attachment/nfs_attachment.hpp"

#include <algorithm>
#include <thread>

namespace spark::volumes {

asio::awaitable<Result<>> NfsAttachment::bring_up() {
  const Place place = volume_.look_at_mount();
  if (auto cleared = co_await mount_point_.clear_broken(); !cleared) co_return cleared;
  if (place == Place::Ours) {
    if (auto right = check_adopted(); !right) co_return right;
  } else {
    if (auto mounted = co_await mount(); !mounted) co_return mounted;
  }
  volume_.status.device = volume_.settings.nfs->host + ":" + volume_.settings.nfs->path;
  volume_.status.filesystem_type = "nfs";
  const Standing standing = volume_.look_at_standing();
  if (standing.own && !volume_.checked) volume_.checked = std::make_shared<CheckedMount>(*standing.own);
  co_return Result<>{};
}

std::vector<std::string> with_connections(std::vector<std::string> options, unsigned cpus) {
  constexpr unsigned kMost = 8;
  const bool is_chosen = std::any_of(options.begin(), options.end(), [](const std::string& option) {
    return option.starts_with("nconnect=") || option.starts_with("proto=") || option == "udp" ||
           option == "rdma";
  });
  if (!is_chosen && cpus > 1) options.push_back("nconnect=" + std::to_string(std::min(kMost, cpus)));
  return options;
}

// Already mounted: by this program, or by another one, possibly with another access mode.
Result<> NfsAttachment::check_adopted() {
  const auto mount = volume_.look_at_standing().top;
  const bool wants_read_only = volume_.settings.access == config::Access::ReadOnly;
  if (!mount || mounts::is_read_only(*mount) == wants_read_only) return {};
  return fail(mounted_otherwise(volume_.settings, wants_read_only));
}

asio::awaitable<Result<>> NfsAttachment::mount() {
  const config::Volume& settings = volume_.settings;
  const std::string source = settings.nfs->host + ":" + settings.nfs->path;
  volume_.say(State::Mounting, "mounting " + source + " on " + settings.mount.native());
  mounts::MountRequest request;
  request.source = source;
  request.target = settings.mount;
  request.type = "nfs";
  request.read_only = settings.access == config::Access::ReadOnly;
  request.options = with_connections(settings.options, std::thread::hardware_concurrency());
  request.may_hide_files = mount_point_.may_hide_files();
  FilesystemIdentity nothing_to_pin;
  const auto done = co_await volume_.seams.mounts.mount(std::move(request), std::move(nothing_to_pin));
  if (!done) co_return done.take_error();
  volume_.forget_mount();  // of the one before
  volume_.attempts.healed_by_us = true;
  co_return Result<>{};
}

}  // namespace spark::volumes
