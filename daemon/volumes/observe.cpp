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

Place Volume::look_at_mount() {
  const Standing standing = look_at_place(*actions_, settings_);
  return standing.place == Place::Ours && is_broken(*standing.top) ? Place::Broken : standing.place;
}

// Found by the probe, or shown by the kernel after an error: not every version does, so there is the probe.
bool Volume::is_broken(const mounts::Mount& mount) const {
  if (is_broken_ || settings_.nfs) return is_broken_;
  return mounts::has_option(mount.super_options, "shutdown") ||
         mounts::has_option(mount.super_options, "emergency_ro") ||
         (settings_.access == config::Access::Exclusive && !is_published() && !is_changing_writing_ &&
          mounts::is_read_only(mount));
}

}  // namespace spark::volumes
