// What has to hold before an NVMe/TCP volume is connected and mounted; each refusal is a sentence with a way
// out.
#include "base/text.hpp"
#include "daemon/volumes/volume.hpp"

namespace spark::volumes {

std::string Volume::namespace_name() const {
  return "namespace " + std::to_string(settings_.nvme->nsid) + " of " + printable(settings_.nvme->subsystem);
}

// It is the file system that this volume is: given in the config, or pinned at its first mount.
Result<> Volume::check_identity(const mounts::Superblock& superblock) const {
  const std::string where = namespace_name();
  if (superblock.type.empty() && !superblock.partition_table.empty()) {
    return fail(
        Errc::Refused,
        where + " holds a " + superblock.partition_table + " partition table, not a file system",
        "correct `subsystem` or `namespace` in the config: a volume is a file system on a whole namespace");
  }
  if (superblock.type.empty()) {
    const bool exclusive = settings_.access == config::Access::Exclusive;
    return fail(Errc::Refused, where + " holds no file system",
                "`sudo spark-stage volumes format " + settings_.name + "` makes one" +
                    (exclusive ? "" : ", on the host that has the volume as `access: exclusive`"));
  }
  if (superblock.type != "ext4" && superblock.type != "xfs") {
    return fail(Errc::Refused, where + " holds " + superblock.type + ", which is neither ext4 nor xfs",
                "correct `subsystem` or `namespace` in the config");
  }
  const auto pinned = actions_->pinned_identity().value_or(FilesystemIdentity{});
  const bool by_config = !settings_.nvme->filesystem_uuid.empty();
  const std::string wanted_uuid = by_config ? settings_.nvme->filesystem_uuid : pinned.uuid;
  if (!wanted_uuid.empty() && wanted_uuid != superblock.uuid) {
    return fail(Errc::Refused,
                where + " holds file system " + superblock.uuid + ", not " + wanted_uuid +
                    (by_config ? " as in the config" : " as at the first mount"),
                by_config ? "correct `filesystem: {uuid: …}` if this is the right one"
                          : "if this is right, set `filesystem: {uuid: " + superblock.uuid +
                                "}` for volume " + settings_.name);
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
  if (!settings_.nvme->filesystem_type.empty() && settings_.nvme->filesystem_type != superblock.type) {
    return fail(Errc::Refused,
                where + " holds " + superblock.type + ", not " + settings_.nvme->filesystem_type +
                    " as in the config",
                "correct `filesystem: {type: …}` if this is the right one");
  }
  return {};
}

// An operator's way out: the daemon never repairs.
std::string Volume::damaged(const std::string& damage) const {
  const bool is_xfs = status_.filesystem_type == "xfs";
  return printable(damage) + ": it has to be repaired by `" + (is_xfs ? "xfs_repair " : "e2fsck -f ") +
         status_.device + "` on one host, while no host has it mounted";
}

Result<> Volume::check_safe_to_mount(const mounts::Superblock& superblock) const {
  const std::string where = namespace_name();
  // The kernel mounts no xfs that needs a repair, not even to read.
  if (!superblock.damage.empty() && (!is_reader() || superblock.type == "xfs")) {
    return fail(Errc::Refused, where + " is not mounted: " + damaged(superblock.damage),
                "run that on this host, which has it connected and does not mount it; afterwards the volume "
                "comes up without being asked");
  }
  if (is_reader() && superblock.being_written) {
    return fail(
        Errc::Refused,
        where +
            " is being written by another host, or was not unmounted cleanly: a read-only mount of it "
            "would read torn data",
        "unmount it on the writer, then it is mounted here by itself");
  }
  return {};
}

}  // namespace spark::volumes
