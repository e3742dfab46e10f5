#include "daemon/volumes/attachment/nvme_checks.hpp"

#include <filesystem>

#include "base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/volumes/release_step.hpp"

namespace spark::volumes {

Result<> check_identity(const VolumeContext& volume, const mounts::Superblock& superblock) {
  const std::string where = namespace_name(volume);
  if (superblock.type.empty() && !superblock.partition_table.empty()) {
    return fail(
        Errc::Refused,
        where + " holds a " + superblock.partition_table + " partition table, not a file system",
        "correct `subsystem` or `namespace` in the config: a volume is a file system on a whole namespace");
  }
  if (superblock.type.empty()) {
    const bool exclusive = volume.settings.access == config::Access::Exclusive;
    return fail(Errc::Refused, where + " holds no file system",
                "`sudo spark-stage volumes format " + volume.settings.name + "` makes one" +
                    (exclusive ? "" : ", on the host that has the volume as `access: exclusive`"));
  }
  if (superblock.type != "ext4" && superblock.type != "xfs") {
    return fail(Errc::Refused, where + " holds " + superblock.type + ", which is neither ext4 nor xfs",
                "correct `subsystem` or `namespace` in the config");
  }
  const auto recorded = volume.seams.store.pinned_identity();
  if (!recorded) {
    return fail(Errc::Refused,
                "the file system of volume " + volume.settings.name +
                    " can't be read from its record: " + recorded.error().message(),
                "if " + superblock.uuid + " is right, remove that file");
  }
  const FilesystemIdentity& pinned = *recorded;
  const bool by_config = !volume.settings.nvme->filesystem_uuid.empty();
  const std::string wanted_uuid = expected_uuid(volume.seams, volume.settings);
  if (!wanted_uuid.empty() && wanted_uuid != superblock.uuid) {
    return fail(Errc::Refused,
                where + " holds file system " + superblock.uuid + ", not " + wanted_uuid +
                    (by_config ? " as in the config" : " as at the first mount"),
                by_config ? "correct `filesystem: {uuid: …}` if this is the right one"
                          : "if this is right, set `filesystem: {uuid: " + superblock.uuid +
                                "}` for volume " + volume.settings.name);
  }
  if (pinned.uuid == superblock.uuid && superblock.filesystem_bytes < pinned.bytes) {
    return fail(Errc::Refused,
                where + " holds file system " + superblock.uuid + " with " +
                    std::to_string(superblock.filesystem_bytes) + " bytes, and it had " +
                    std::to_string(pinned.bytes) + " at the last mount: it may be an older copy",
                "if this is right, remove the volume's file below volumes/ in the state folder");
  }
  if (superblock.bytes > 0 && superblock.bytes < superblock.filesystem_bytes) {
    return fail(Errc::Refused, where + " is smaller than its file system: the target shows only a part of it",
                "repair the export on the target; nothing is mounted until then");
  }
  if (!volume.settings.nvme->filesystem_type.empty() &&
      volume.settings.nvme->filesystem_type != superblock.type) {
    return fail(Errc::Refused,
                where + " holds " + superblock.type + ", not " + volume.settings.nvme->filesystem_type +
                    " as in the config",
                "correct `filesystem: {type: …}` if this is the right one");
  }
  return {};
}

Result<> check_safe_to_mount(const VolumeContext& volume, const mounts::Superblock& superblock,
                             bool is_writer) {
  const std::string where = namespace_name(volume);
  // The kernel does not mount an xfs that needs a repair, not even read-only.
  if (!superblock.damage.empty() && (is_writer || superblock.type == "xfs")) {
    return fail(Errc::Refused, where + " is not mounted: " + damaged(volume, superblock.damage),
                "run that on this host, which has it connected and does not mount it; the volume then "
                "comes up automatically");
  }
  if (!is_writer && superblock.being_written) {
    return fail(
        Errc::Refused,
        where +
            " is being written by another host, or was not unmounted cleanly: a read-only mount of it "
            "would read torn data",
        "unmount it on the writer; it is then mounted here automatically" +
            (wants_fence(volume.settings)
                 ? "; if that host is gone for good, `sudo spark-stage volumes take " + volume.settings.name +
                       "` takes it over"
                 : std::string()));
  }
  return {};
}

// The kernel has one file system in memory for all mounts of a device: one that was shut down, or is older
// than an exchange of the disk, would be mounted again.
asio::awaitable<Result<>> check_other_mounts(VolumeContext& volume, dev_t device, std::string uuid) {
  const auto others = mounts_of(volume.seams, device);
  if (!others) co_return others.take_error();
  Result<> unseen;
  for (const mounts::Mount& other : *others) {
    const mounts::MountNumbers numbers{other.id, device};
    const auto state = co_await volume.seams.device.mounted_state(other.target, numbers);
    const bool is_same = state && (state->uuid.empty() || state->uuid == uuid);  // empty: an old kernel
    if (is_same && !state->is_shut_down) co_return Result<>{};
    unseen = fail(Errc::Refused,
                  volume.status.device + " is not mounted: the device is mounted at " +
                      printable(other.target.native()) +
                      (is_same ? ", and its file system was shut down there"
                       : state ? ", with its former file system " + state->uuid
                               : ", with a file system that can't be seen: " + state.error().what),
                  "unmount it there; it is then mounted here automatically");
    if (state) break;  // the others show the same
  }
  co_return unseen;
}

asio::awaitable<void> follow_rename(VolumeContext& volume) {
  const json::object record = volume.seams.store.saved(Record::Renamed);
  auto pinned = volume.seams.store.pinned_identity().value_or(FilesystemIdentity{});
  const std::string& configured = volume.settings.nvme->filesystem_uuid;
  const bool is_followed = !configured.empty() && get_string(record, "to") == configured;
  if (!is_followed || pinned.uuid.empty() || get_string(record, "from") != pinned.uuid) co_return;
  pinned.uuid = configured;
  const auto moved = co_await volume.seams.store.pin(std::move(pinned));
  if (!moved) log::survived(moved.error());
}

}  // namespace spark::volumes
