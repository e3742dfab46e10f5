// The steps of an NFS volume: mounted, and asked now and then whether its server still answers.
#include "daemon/volumes/volume.hpp"

namespace spark::volumes {

asio::awaitable<Result<>> Volume::bring_up_nfs() {
  const std::string source = settings_.nfs->host + ":" + settings_.nfs->path;
  if (look_at_mount() != Place::Ours) {
    set_state(working_state(State::Mounting), "mounting " + source + " on " + settings_.mount.native());
    mounts::MountRequest request;
    request.source = source;
    request.target = settings_.mount;
    request.type = "nfs";
    request.read_only = settings_.access == config::Access::ReadOnly;
    request.options = settings_.options;
    FilesystemIdentity nothing_to_pin;
    const auto done = co_await actions_->mount(std::move(request), std::move(nothing_to_pin));
    if (!done) co_return tl::unexpected<Error>(done.error());
  }
  status_.device = source;
  status_.filesystem_type = "nfs";
  co_return Result<>{};
}

asio::awaitable<bool> Volume::nfs_answers() {
  // Asked at its own pace, except while it does not answer: then its return is noticed at once.
  if (status_.state == State::Ready && clock_.steady() - last_nfs_probe_ < pace_.nfs_probe) co_return true;
  const auto answered = co_await actions_->probe(settings_.mount);
  last_nfs_probe_ = clock_.steady();
  co_return answered.has_value();
}

}  // namespace spark::volumes
