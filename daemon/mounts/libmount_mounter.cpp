#include "daemon/mounts/libmount_mounter.hpp"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include "base/file_system.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"
#include "daemon/mounts/filesystems/block_device.hpp"
#include "daemon/mounts/filesystems/mmp_claim.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"
#include "daemon/mounts/filesystems/xfs.hpp"
#include "daemon/mounts/hidden_mount.hpp"
#include "daemon/mounts/libmount_call.hpp"
#include "daemon/mounts/mount_errors.hpp"
#include "daemon/mounts/mount_point.hpp"
#include "daemon/mounts/shutdown.hpp"
#include "daemon/mounts/users.hpp"

namespace spark::mounts {
namespace {

using Table = std::vector<Mount>;
constexpr char kNfsHelper[] = "/sbin/mount.nfs";
constexpr std::chrono::seconds kGivingUp{3};  // time for programs that were asked to end

std::string quote(const std::filesystem::path& path) {
  return printable(path.native());
}

bool is_nfs(std::string_view type) {
  return type == "nfs" || type == "nfs4";
}

// Keeps a reader from replaying the writer's journal.
const char* no_replay_option(const std::string& type) {
  return type == "xfs" ? "norecovery" : "noload";
}

std::string options_of(const MountRequest& request) {
  std::vector<std::string> all = {"_netdev", request.read_only ? "ro" : "rw"};
  if (request.read_only && !request.keeps_journal && !is_nfs(request.type))
    all.emplace_back(no_replay_option(request.type));
  if (request.type == "xfs" && has_dead_xfs({})) all.emplace_back("nouuid");
  // Who writes the volume on another host must not be root here.
  for (const auto& [safe, other] : {std::pair{"nosuid", "suid"}, std::pair{"nodev", "dev"}}) {
    if (std::ranges::find(request.options, other) == request.options.end()) all.emplace_back(safe);
  }
  for (const std::string& option : request.options) {
    if (std::find(all.begin(), all.end(), option) == all.end()) all.push_back(option);
  }
  return join(all, ",");
}

// Identifies the request's source in the mount table: by number for a device, by name for an export.
struct Source {
  std::string name;
  std::optional<dev_t> device;  // none for NFS

  bool is_source_of(const Mount& mount) const {
    if (device) return mount.device_number == *device;
    const auto plain = [](std::string_view export_name) {
      while (export_name.size() > 1 && export_name.ends_with('/')) export_name.remove_suffix(1);
      return export_name;
    };
    return mount.type.starts_with("nfs") && plain(mount.source) == plain(name);
  }
};

Result<Source> source_of(const MountRequest& request) {
  if (is_nfs(request.type)) return Source{request.source, std::nullopt};
  const auto device = device_number_of(request.source);
  if (!device) return device.take_error();
  return Source{request.source, *device};
}

const char* access_word(bool read_only) {
  return read_only ? "read-only" : "writable";
}

// Whether it is mounted there; Refused if the mount there differs from the request.
Result<bool> is_there(const MountRequest& request, const Source& source, const Table& table) {
  const Mount* there = mounted_at(table, request.target);
  if (there == nullptr) return false;
  const bool is_folder = source.device && there->root != "/";  // a bind mount
  if (is_folder || !source.is_source_of(*there)) {
    return fail(Errc::Refused,
                doing(request) + ": " + (is_folder ? "a folder of " : "") + printable(there->source) + " (" +
                    printable(there->type) + ") is mounted there" +
                    (is_folder ? "" : ", and is not this volume's present device"),
                "unmount it first: umount " + quote(request.target));
  }
  if (is_read_only(*there) == request.read_only) return true;
  return fail(Errc::Refused,
              doing(request) + ": it is mounted there already, but " + access_word(!request.read_only),
              "unmount it first: umount " + quote(request.target));
}

// Setting a device read-only under another program's writable mount would break that mount. The reverse would
// give the kernel two inconsistent views of one file system.
Result<> check_other_mounts(const MountRequest& request, const Source& source, const Table& table) {
  for (const Mount& mount : table) {
    if (!source.device || mount.device_number != *source.device) continue;
    if (has_option(mount.super_options, "ro") == request.read_only) continue;
    return fail(Errc::Refused,
                doing(request) + ": the device is mounted at " + quote(mount.target) + " too, " +
                    access_word(!request.read_only),
                "unmount it there first");
  }
  return {};
}

// After a successful mount: checks that it matches the request. If it does not, unmounts it again.
Result<> verify(const MountRequest& request, const Source& source) {
  const auto table = read_mount_table({});
  if (!table) return table.take_error();
  const auto there = is_there(request, source, *table);
  if (there && *there) return {};
  const Mount* top = mounted_at(*table, request.target);
  if (top != nullptr && source.is_source_of(*top)) call_unmount(request.target, UnmountCall::Plain);
  if (!there) return fail_with(there.error(), "after the mount");
  return fail(Errc::Failed, doing(request) + ": reported as done, but nothing is mounted there");
}

Result<> mount_block(const MountRequest& request, const UniqueFd& folder) {
  const auto superblock = probe_superblock(request.source);
  if (!superblock) return fail_with(superblock.error(), doing(request));
  // Since the check, the name may have been reassigned to another volume's disk.
  if (!request.uuid.empty() && superblock->uuid != request.uuid) {
    return fail(Errc::Unavailable,
                doing(request) + ": file system " + printable(superblock->uuid) + " is there now, not " +
                    printable(request.uuid),
                "the device is looked for again");
  }
  const auto set = set_device_read_only(request.source, request.read_only);
  if (!set) return fail_with(set.error(), doing(request));
  if (!request.claim_as.empty()) {
    Superblock closed = *superblock;
    closed.mmp_open = false;  // or another host's claim
    const auto claimed = claim_by_mmp(request.source, request.claim_as, mmp_wait(closed, true));
    if (!claimed) return fail_with(claimed.error(), doing(request));
  }
  KernelLog log{SystemRoot{}};
  const MountOutcome outcome =
      mount_onto(folder, request.source, request.target, request.type, options_of(request));
  if (outcome.done()) return {};
  // MMP's node may have changed: it may have mounted between this process's read and the kernel's.
  const auto after = probe_superblock(request.source);
  const std::string words = kernel_words(outcome, log, request.source, request.type);
  return fail(explain_block_mount(request, outcome.error_number, after ? *after : *superblock, words));
}

Result<> mount_nfs(const MountRequest& request, const UniqueFd& folder) {
  if (::access(kNfsHelper, X_OK) != 0) {
    return fail(Errc::Unsupported, doing(request) + ": there is no " + kNfsHelper, "install nfs-common");
  }
  const MountOutcome outcome =
      mount_onto(folder, request.source, request.target, request.type, options_of(request));
  if (outcome.done()) return {};
  return fail(explain_nfs_mount(request, outcome));
}

// A mount keeps the number of a device that is gone.
bool is_dead(const Mount& mount) {
  const std::string device = "/sys/dev/block/" + device_text(mount.device_number);
  return mount.source.starts_with("/dev/") && ::access(device.c_str(), F_OK) != 0;
}

// Other mounts of this file system on this host: a bind mount, a second mount. They would remain after the
// unmount. Those of a dead device keep nothing.
Result<> check_only_mount(const Table& table, const Mount& mount, const std::string& doing) {
  for (const Mount& other : table) {
    const bool is_same = other.device_number == mount.device_number && other.target != mount.target;
    if (!is_same || mount.type.starts_with("nfs") || is_dead(mount)) continue;
    return fail(Errc::Refused, doing + ": its file system is mounted at " + quote(other.target) + " too",
                "unmount it there first: umount " + quote(other.target));
  }
  return {};
}

// Unmounted here, but still mounted in a container, or detached with open files: remounts it, because it must
// not look unused.
Result<Change> put_back(const Mount& mount, const std::string& doing) {
  auto found = users_elsewhere({}, mount.device_number);
  if (found.empty()) found = users_of_detached({}, mount.device_number);
  const std::string users = describe_users(found, {}, mount);
  const auto folder = open_mount_point(mount.target);
  const bool is_back =
      folder &&
      mount_onto(*folder, mount.source, mount.target, mount.type, "_netdev," + mount.options).done();
  return fail(Errc::Refused,
              doing + ": its file system is mounted elsewhere too, by " + users +
                  (is_back ? "" : "; it could not be mounted here again"),
              "stop its users, perhaps a container, and try again");
}

std::string_view server_of(const Mount& mount) {
  return std::string_view(mount.source).substr(0, mount.source.find(":/"));
}

// Kernels from 6.5 to 6.13 can't shut down one mount without its server's other mounts.
bool has_others_of_server(const Table& table, const Mount& mount) {
  return std::ranges::any_of(table, [&](const Mount& other) {
    return other.id != mount.id && other.type.starts_with("nfs") && server_of(other) == server_of(mount);
  });
}

// Makes requests that wait for a dead server fail. A program may send further requests as it handles the
// error, or as it exits, so this is repeated while the mount is in use. True if that has unmounted it.
// Kernels since 6.5 need one call only, unless `spares_server`.
bool give_up_waiting(const Mount& mount, bool spares_server) {
  if (!spares_server && shut_down_nfs({}, mount)) return false;
  const auto end = std::chrono::steady_clock::now() + kGivingUp;
  do {
    const MountOutcome outcome = call_unmount(mount.target, UnmountCall::Force);
    if (outcome.done() || outcome.error_number != EBUSY) return outcome.done();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

Result<Change> mount(const MountRequest& request) {
  const auto source = source_of(request);
  if (!source) return fail_with(source.error(), doing(request));
  const auto table = read_mount_table({});
  if (!table) return table.take_error();
  const auto there = is_there(request, *source, *table);
  if (!there) return there.take_error();
  if (*there) return Change::AlreadyThere;
  const auto alone = check_other_mounts(request, *source, *table);
  if (!alone) return alone.take_error();
  auto prepared = make_mount_point(request.target);
  if (prepared && !request.may_hide_files) prepared = check_empty(request.target);
  if (!prepared) return fail_with(prepared.error(), doing(request));
  const auto folder = open_mount_point(request.target);
  if (!folder) return fail_with(folder.error(), doing(request));
  const auto mounted = is_nfs(request.type) ? mount_nfs(request, *folder) : mount_block(request, *folder);
  if (!mounted) return mounted.take_error();
  const auto verified = verify(request, *source);
  if (!verified) return verified.take_error();
  return Change::Done;
}

Result<Change> unmount(const std::filesystem::path& target, Unmount how) {
  const std::string doing = "unmounting " + quote(target);
  const auto table = read_mount_table({});
  if (!table) return fail_with(table.error(), doing);
  const Mount* mount = mounted_at(*table, target);
  if (mount == nullptr) return Change::AlreadyThere;
  const bool is_plain = how == Unmount::Plain;
  if (auto only = is_plain ? check_only_mount(*table, *mount, doing) : Result<>(); !only)
    return only.take_error();
  const bool spares_server = how == Unmount::Force && has_others_of_server(*table, *mount);
  if (!is_plain && is_nfs(mount->type) && give_up_waiting(*mount, spares_server)) return Change::Done;
  const MountOutcome outcome = call_unmount(target, is_plain ? UnmountCall::Plain : UnmountCall::Detach);
  if (outcome.done() && is_plain && mount->source.starts_with("/dev/") && is_device_claimed(mount->source))
    return put_back(*mount, doing);
  if (outcome.done()) return Change::Done;
  if (outcome.error_number != EBUSY) return fail_errno(outcome.error_number, doing);
  const std::string users = describe_users(users_of({}, *mount), *table, *mount);
  return fail(Errc::Refused, doing + ": it is in use by " + users,
              "end them, or let them leave it, and try again");
}

}  // namespace spark::mounts
