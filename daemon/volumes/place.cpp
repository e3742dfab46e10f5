#include "daemon/volumes/place.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.hpp"

namespace spark::volumes {
namespace {

Place place_of(const Seams& seams, const config::Volume& volume, const mounts::Mount& mount) {
  if (mount.root != "/") return Place::Foreign;  // a bind mount of a folder
  if (volume.nfs) {
    const bool is_export =
        mount.type.starts_with("nfs") && mount.source == volume.nfs->host + ":" + volume.nfs->path;
    return is_export ? Place::Ours : Place::Foreign;
  }
  const auto owner = seams.snapshot.owner_of_device(mount.device_number);
  if (!owner) {
    // The kernel keeps a dead disk's number while the mount holds it, but no device has that number any more.
    const bool was_nvme = mount.source.starts_with("/dev/nvme");
    if (owner.error().kind == Errc::NotFound) return was_nvme ? Place::Dead : Place::Foreign;
    return owner.error().kind == Errc::Invalid ? Place::Foreign : Place::Unknown;
  }
  if (owner->subsystem != volume.nvme->subsystem) return Place::Foreign;
  if (volume.nvme->nsid == config::kAnyNamespace) return Place::Ours;
  if (owner->is_partition || (owner->nsid != 0 && owner->nsid != volume.nvme->nsid)) return Place::Foreign;
  const auto block = own_namespace(seams, volume);
  if (block && block->device_number == mount.device_number) return Place::Ours;
  if (block) return former_path(seams, volume, mount.device_number) ? Place::Former : Place::Foreign;
  // Another target may offer a subsystem with the same NQN.
  const auto strangers = seams.snapshot.strangers(volume.nvme->subsystem);
  const auto theirs = seams.snapshot.find_namespace_below(strangers, volume.nvme->nsid);
  return theirs && theirs->device_number == mount.device_number ? Place::Foreign : Place::Ours;
}

}  // namespace

Result<nvmetcp::Namespace> own_namespace(const Seams& seams, const config::Volume& volume) {
  const auto all = seams.snapshot.controllers(volume.nvme->subsystem);
  if (!all) return all.take_error();
  return seams.snapshot.find_namespace_below(*all, volume.nvme->nsid);
}

std::optional<nvmetcp::Controller> former_path(const Seams& seams, const config::Volume& volume,
                                               dev_t device) {
  const auto all = seams.snapshot.controllers(volume.nvme->subsystem);
  if (!all) return std::nullopt;
  const auto old = std::ranges::find_if(*all, [&](const nvmetcp::Controller& one) {
    if (one.is_live()) return false;
    const auto block = seams.snapshot.find_namespace_below({one}, volume.nvme->nsid);
    return block && block->device_number == device;
  });
  return old == all->end() ? std::nullopt : std::optional(*old);
}

Standing look_at_place(const Seams& seams, const config::Volume& volume) {
  const auto& table = seams.mounts.mount_table();
  if (!table) return {};
  const auto stack = mounts::stack_at(*table, volume.mount);
  const mounts::Mount* over = stack.empty() ? nullptr : mounts::covering(*table, *stack.front());
  Standing standing{Place::Empty, std::nullopt, std::nullopt};
  for (const mounts::Mount* mount : stack) {
    const bool is_reached = mount == stack.front() && over == nullptr;
    const Place its = place_of(seams, volume, *mount);
    if (is_reached) standing = {its, *mount, std::nullopt};
    if (!is_own(its)) continue;
    standing.own = OwnMount(*mount);
    if (!is_reached) standing = {Place::Covered, over != nullptr ? *over : *stack.front(), standing.own};
    standing.is_own_closed =
        mounts::has_option(mount->options, "ro") && mounts::has_option(mount->super_options, "ro");
    break;
  }
  return standing;
}

Result<std::vector<mounts::Mount>> mounts_of(const Seams& seams, dev_t device) {
  const auto& table = seams.mounts.mount_table();
  if (!table) return table.take_error();
  std::vector<mounts::Mount> all;
  std::ranges::copy_if(*table, std::back_inserter(all),
                       [&](const mounts::Mount& one) { return one.device_number == device; });
  return all;
}

std::optional<OwnMount> writer_elsewhere(const Seams& seams, const config::Volume& volume) {
  const auto block = own_namespace(seams, volume);
  const auto all = mounts_of(seams, block ? block->device_number : 0);
  if (!block || !all) return std::nullopt;
  for (const mounts::Mount& one : *all) {
    if (one.target != volume.mount && !mounts::is_read_only(one)) return OwnMount(one);
  }
  return std::nullopt;
}

Error covered(const config::Volume& volume, const Standing& standing) {
  const std::string where = printable(volume.mount.native()), over = printable(standing.top->target.native());
  return {Errc::Refused,
          printable(standing.top->source) + " (" + printable(standing.top->type) + ") is mounted on " + over +
              " and hides volume " + volume.name + (over == where ? "" : " at " + where),
          "unmount that first: umount " + over};
}

Error mounted_otherwise(const config::Volume& volume, bool wants_read_only) {
  return {Errc::Refused,
          printable(volume.mount.native()) + " is mounted " + (wants_read_only ? "read-write" : "read-only") +
              " already",
          std::string("unmount it, and remove its fstab line if it has one; it is then mounted ") +
              (wants_read_only ? "read-only" : "for writing") + " automatically"};
}

bool is_own(Place place) {
  return place == Place::Ours || place == Place::Dead || place == Place::Former || place == Place::Broken;
}

bool may_detach(const config::Volume& volume, Place place) {
  return place == Place::Dead && volume.on_loss == config::OnLoss::Remount;
}

}  // namespace spark::volumes
