#include "daemon/volumes/release_step.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "daemon/volumes/place.hpp"
#include "nvmetcp/sysfs/registry.hpp"

namespace spark::volumes {
namespace {

// Where a device is still mounted; empty means nowhere.
Result<std::string> where_mounted(const Seams& seams, dev_t device) {
  const auto all = mounts_of(seams, device);
  if (!all) return all.take_error();
  return all->empty() ? "" : printable(all->front().target.native());
}

asio::awaitable<Result<>> unmount(const Seams& seams, const config::Volume& volume, Standing standing,
                                  OnDown on_down, std::string& users) {
  const mounts::Unmount how = on_down == OnDown::Force             ? mounts::Unmount::Force
                              : may_detach(volume, standing.place) ? mounts::Unmount::Detach
                                                                   : mounts::Unmount::Plain;
  const auto unmounted = co_await seams.mounts.unmount(*standing.own, how);
  // A worker may wait for the server with unwritten data, although the mount is detached.
  const auto now = look_at_place(seams, volume);
  const bool is_gone = !now.own || *now.own != *standing.own;
  if (!unmounted && !(how == mounts::Unmount::Force && is_gone)) co_return fail(unmounted.error());
  if (unmounted && !is_gone)
    co_return fail(Errc::Failed, "the mount on " + printable(volume.mount.native()) + " stays");
  if (unmounted) users = *unmounted;
  co_return Result<>{};
}

// Through a detached mount of the volume's own namespace, a program would go on writing.
asio::awaitable<bool> is_used_by_another(const Seams& seams, const config::Volume& volume, Errc refusal) {
  if (refusal != Errc::Refused) co_return false;
  const auto own = own_namespace(seams, volume);
  if (!own) co_return own.error().kind == Errc::NotFound;
  const auto superblock = co_await seams.device.read_superblock("/dev/" + own->device);
  co_return superblock && !superblock->is_claimed;
}

}  // namespace

Error mounted_before(const Seams& seams, const config::Volume& volume, const std::string& device) {
  const auto block = own_namespace(seams, volume);
  const std::string where = block ? where_mounted(seams, block->device_number).value_or("") : "";
  return {
      Errc::Refused,
      printable(device) + " is not mounted: " +
          (where.empty() ? "a program has it, or a mount that this host's mount table does not show, as in a "
                           "container or after `umount -l`,"
                         : "the device is mounted at " + where + ",") +
          " perhaps in a state that is older than another host's writes",
      where.empty() ? "end that first" : "unmount it there first: umount " + where};
}

Result<> check_not_elsewhere(const Seams& seams, const config::Volume& volume) {
  const auto block = own_namespace(seams, volume);
  if (!block || look_at_place(seams, volume).own) return {};
  const std::string where = where_mounted(seams, block->device_number).value_or("");
  if (where.empty()) return {};
  return fail(Errc::Refused,
              "/dev/" + block->device + " is mounted at " + where + ", and the volume's place is " +
                  printable(volume.mount.native()),
              "unmount it there first: umount " + where);
}

std::string hint_of_force(const config::Volume& volume) {
  if (volume.nvme) {
    return "if its target is gone for good, `sudo nvme disconnect -n " + printable(volume.nvme->subsystem) +
           "` ends the mount, and unwritten data is lost; then `sudo spark-stage volumes down " +
           volume.name + "`";
  }
  return "if its server is gone for good, `sudo spark-stage volumes down " + volume.name +
         " --force` unmounts it; writes that the server has not received are lost";
}

std::string expected_uuid(const Seams& seams, const config::Volume& volume) {
  const std::string& configured = volume.nvme->filesystem_uuid;
  return configured.empty() ? seams.store.pinned_identity().value_or(FilesystemIdentity{}).uuid : configured;
}

std::string renamed(const Seams& seams, const config::Volume& volume, const std::string& uuid) {
  return "the UUID of its file system was changed from " + expected_uuid(seams, volume) + " to " + uuid +
         " while it was mounted: set `uuid: " + uuid + "`, or its next mount is refused";
}

bool is_renamed(const Seams& seams, const config::Volume& volume, const OwnMount& mount,
                const std::string& uuid) {
  const json::object record = seams.store.saved(Record::Renamed);
  return get_string(record, "mount") == mount.text() && get_string(record, "to") == uuid &&
         get_string(record, "from") == expected_uuid(seams, volume);
}

bool wants_fence(const config::Volume& volume) {
  return volume.nvme && volume.access == config::Access::Exclusive && volume.fence != config::Fence::None;
}

bool wants_reservation(const config::Volume& volume) {
  return wants_fence(volume) && volume.fence != config::Fence::Mmp;
}

bool has_live_path(const Seams& seams, const config::Volume& volume) {
  const auto all = seams.snapshot.controllers(volume.nvme->subsystem);
  return all && std::ranges::any_of(*all, &nvmetcp::Controller::is_live);
}

asio::awaitable<Result<Released>> release_mount(const Seams& seams, const config::Volume& volume,
                                                OnDown on_down) {
  const Standing standing = look_at_place(seams, volume);
  const std::string where = printable(volume.mount.native());
  Released released;
  if (standing.place == Place::Unknown)
    co_return fail(Errc::Failed, "the mount on " + where + " can't be read", "try again");
  if (standing.place == Place::Covered) co_return fail(covered(volume, standing));
  if (is_own(standing.place)) {
    // A person may have mounted the volume's device on top of its dead mount.
    for (Standing next = standing; is_own(next.place); next = look_at_place(seams, volume)) {
      if (auto gone = co_await unmount(seams, volume, next, on_down, released.users); !gone)
        co_return gone.take_error();
    }
    // Another program had covered its mount with a second one of the same device.
    if (const Standing left = look_at_place(seams, volume); left.place == Place::Covered)
      co_return fail(covered(volume, left));
  } else {
    released.change = Change::AlreadyThere;
    if (standing.top)
      released.foreign = printable(standing.top->source) + " (" + printable(standing.top->type) +
                         ") is mounted there, and is not this volume's: left alone";
  }
  auto given = co_await give_back_reservation(seams, volume);
  static_cast<GivenBack&>(released) = std::move(given);
  if (auto left = check_has_left(seams, volume); !left) co_return left.take_error();
  co_return released;
}

Result<> check_has_left(const Seams& seams, const config::Volume& volume) {
  const Standing last = look_at_place(seams, volume);
  if (!last.own) return {};
  return fail(Errc::Unavailable, printable(last.top->source) + " was mounted there meanwhile", "try again");
}

asio::awaitable<GivenBack> give_back_reservation(const Seams& seams, const config::Volume& volume) {
  GivenBack given;
  if (!wants_reservation(volume)) co_return given;
  const std::string failed = "the reservation may still be held for this host: giving it back failed: ";
  const auto block = own_namespace(seams, volume);
  if (!block || !has_live_path(seams, volume)) {
    given.still_reserved = failed + (block ? "no path to the target is live" : block.error().message());
    co_return given;
  }
  const auto elsewhere = where_mounted(seams, block->device_number);  // a writer there needs it
  if (!elsewhere || !elsewhere->empty()) {
    given.still_reserved = failed + (elsewhere ? "the device is mounted at " + *elsewhere + " too"
                                               : elsewhere.error().message());
    co_return given;
  }
  ReservationRequest request{
      ReservationAct::Release, "/dev/" + block->device, {volume.nvme->subsystem, volume.nvme->nsid}};
  const auto answer = co_await seams.reserve(std::move(request));
  if (!answer) given.still_reserved = failed + answer.error().message();
  given.gave_back = answer && answer->hold != nvmetcp::Hold::Unsupported;
  co_return given;
}

asio::awaitable<std::string> mounted_filesystem(const Seams& seams, OwnMount mount) {
  const auto state = co_await seams.device.mounted_state(mount.target(), mount.numbers());
  co_return state ? state->uuid : "";
}

std::string holds_another(const std::string& device, const std::string& uuid) {
  return device + " holds " +
         (uuid.empty() ? "no file system that is known, and one is mounted"
                       : "another file system than the one that is mounted: " + printable(uuid));
}

asio::awaitable<Result<>> check_not_exchanged(const Seams& seams, const config::Volume& volume,
                                              OwnMount mount, std::string device, mounts::Superblock there,
                                              bool is_cut_off) {
  const std::string reported = co_await mounted_filesystem(seams, mount);
  const std::string mounted = reported.empty() ? expected_uuid(seams, volume) : reported;
  // The record may be of an earlier file system: the mounted one is open for writing.
  const bool is_its = mounted.empty() || mounted == there.uuid || (reported.empty() && there.being_written);
  if (is_its) co_return Result<>{};
  Result<> stopped = fail(Errc::Unavailable, "the kernel does not say which one it has mounted");
  if (is_cut_off || !reported.empty()) stopped = co_await seams.device.stop_writing(mount, device);
  co_return fail(
      stopped ? Errc::Refused : Errc::Unavailable,
      volume.mount.native() + " is not unmounted: " + printable(device) + " holds another file system than " +
          mounted + ", which is mounted, and its unmount would write to it" +
          (stopped ? "" : "; " + stopped.error().what),
      // Otherwise Linux flushes it first.
      stopped ? "`sudo nvme disconnect -n " + printable(volume.nvme->subsystem) +
                    "` ends the mount without writing; then `spark-stage volumes down " + volume.name + "`"
              : "try again");
}

std::optional<LooseConnection> loose_connection(const Seams& seams, const config::Volume& volume) {
  const std::string& subsystem = volume.nvme->subsystem;
  const auto& table = seams.mounts.mount_table();
  const auto ours = seams.snapshot.controllers(subsystem);
  if (!table || !ours || seams.neighbours.subsystem_shared()) return std::nullopt;
  const auto block = own_namespace(seams, volume);
  const auto strangers = seams.snapshot.strangers(subsystem);
  const bool is_in_use = std::ranges::any_of(*table, [&](const mounts::Mount& one) {
    if (block && one.device_number == block->device_number) return false;
    const auto owner = seams.snapshot.owner_of_device(one.device_number);
    if (!owner || owner->subsystem != subsystem) return false;
    const auto leads_there = [&](const std::vector<nvmetcp::Controller>& through) {
      const auto its = seams.snapshot.find_namespace_below(through, owner->nsid);
      return its && its->device_number == one.device_number;
    };
    return leads_there(*ours) || !leads_there(strangers);  // a partition: neither
  });
  return is_in_use ? std::nullopt : std::optional(LooseConnection(subsystem));
}

asio::awaitable<Disconnected> disconnect(const Seams& seams, const config::Volume& volume,
                                         LooseConnection connection, nvmetcp::CutOff cut_off) {
  Disconnected done;
  const auto all = seams.snapshot.controllers(connection.subsystem());
  if (!all) {
    done.outcome = fail(all.error());
    co_return done;
  }
  std::vector<std::string> leaving;
  for (const nvmetcp::Controller& controller : *all) {
    if (controller.transport == "tcp" && !nvmetcp::is_foreign(controller)) leaving.push_back(controller.name);
  }
  for (const std::string& controller : leaving) {
    const auto gone = co_await seams.fabric.disconnect(controller, connection.subsystem(), cut_off, leaving);
    if (gone) done.controllers.push_back(controller);
    if (!gone && done.outcome) done.outcome = fail(gone.error());
    if (!gone && !cut_off.is_all && gone.error().kind == Errc::Refused) break;  // its user keeps every path
  }
  if (done.outcome || !cut_off.is_none()) co_return done;
  const bool is_used = co_await is_used_by_another(seams, volume, done.outcome.error().kind);
  if (!is_used) co_return done;
  done.kept = done.outcome.error().message();
  done.outcome = {};
  co_return done;
}

}  // namespace spark::volumes
