// What is, from sysfs and mountinfo: read anew at every look, never remembered, never blocking.
#include "daemon/volumes/volume.hpp"

namespace spark::volumes {

// All paths together; also notes each for `status`.
Volume::Link Volume::look_at_paths() {
  const auto all = actions_->controllers(settings_.nvme->subsystem);
  if (!all) return status_.state == State::Stalled ? Link::Down : Link::Live;  // unknown changes nothing
  status_.paths.clear();
  bool live = false, coming = false;
  for (const nvmetcp::Controller& controller : *all) {
    status_.paths.push_back(
        {controller.name, portal_text(controller.portal), controller.state, "", controller.owner});
    live = live || controller.is_live();
    coming = coming || (!controller.is_live() && !controller.is_going());
  }
  note_missing_paths();
  return live ? Link::Live : coming ? Link::Down : Link::Gone;
}

Volume::Place Volume::look_at_mount() {
  const auto mount = actions_->mount_at(settings_.mount);
  if (!mount) return Place::Unknown;
  return *mount ? place_of(**mount) : Place::Empty;
}

Volume::Place Volume::place_of(const mounts::Mount& mount) {
  if (settings_.nfs) {
    const std::string source = settings_.nfs->host + ":" + settings_.nfs->path;
    if (!mount.type.starts_with("nfs") || mount.source != source) return Place::Foreign;
    return is_broken_ ? Place::Broken : Place::Ours;
  }
  const auto owner = actions_->subsystem_of_device(mount.device_number);
  if (!owner) {
    // The kernel keeps a dead disk's number while the mount holds it, but no device answers to it any more.
    const bool was_nvme = mount.source.starts_with("/dev/nvme");
    return owner.error().kind == Errc::NotFound && was_nvme ? Place::Dead : Place::Foreign;
  }
  if (*owner != settings_.nvme->subsystem) return Place::Foreign;
  const auto block = actions_->find_namespace(settings_.nvme->subsystem, settings_.nvme->nsid);
  if (block && block->device_number != mount.device_number) return Place::Foreign;
  // What the kernel does after an error, as far as it shows it: not every version does, so there is the
  // probe.
  const bool shows_error = mounts::has_option(mount.super_options, "shutdown") ||
                           mounts::has_option(mount.super_options, "emergency_ro") ||
                           (settings_.access == config::Access::Exclusive && !is_published() &&
                            !is_changing_writing_ && mounts::is_read_only(mount));
  return is_broken_ || shows_error ? Place::Broken : Place::Ours;
}

}  // namespace spark::volumes
