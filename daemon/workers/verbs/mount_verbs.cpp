#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <set>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "daemon/mounts/filesystems/mounted_state.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"
#include "daemon/mounts/guard.hpp"
#include "daemon/mounts/libmount_mounter.hpp"
#include "daemon/mounts/publish.hpp"
#include "daemon/mounts/shutdown.hpp"
#include "daemon/mounts/users.hpp"
#include "daemon/workers/messages.hpp"
#include "daemon/workers/verbs/verbs.hpp"
#include "daemon/workers/wire.hpp"

namespace spark::workers {
namespace {

std::string users_of_mount(const std::string& target) {
  const auto table = mounts::read_mount_table({});
  if (!table) return "";
  const mounts::Mount* mount = mounts::mounted_at(*table, target);
  if (mount == nullptr) return "";
  const auto users = mounts::users_of({}, *mount);
  return users.empty() ? "" : mounts::describe_users(users, *table, *mount);
}

// False: nothing is mounted there. Another program may have mounted something since the daemon looked.
Result<bool> is_still_there(const std::string& target, const mounts::MountNumbers& seen) {
  const auto table = mounts::read_mount_table({});
  if (!table) return table.take_error();
  const mounts::Mount* mount = mounts::mounted_at(*table, target);
  if (mount == nullptr) return false;
  if (mounts::is_mount(*mount, seen)) return true;
  return fail(Errc::Refused,
              printable(target) + ": " + printable(mount->source) + " (" + printable(mount->type) +
                  ") was mounted there meanwhile",
              "unmount that first: umount " + printable(target));
}

// For steps that change a mount: its path.
Result<std::string> own_mount_in(const json::object& request) {
  const std::string target = get_text(request, "target");
  const auto seen = member_of<mounts::MountNumbers>(request, "mounted");
  if (!seen) return seen.take_error();
  const auto there = is_still_there(target, *seen);
  if (!there) return there.take_error();
  if (!*there) return fail(Errc::Unavailable, "nothing is mounted on " + printable(target) + " any more");
  return target;
}

// The same for a mount that others may hide.
Result<std::string> own_mount_below(const json::object& request) {
  const std::string target = get_text(request, "target");
  const auto seen = member_of<mounts::MountNumbers>(request, "mounted");
  if (!seen) return seen.take_error();
  const auto table = mounts::read_mount_table({});
  if (!table) return table.take_error();
  const bool is_there = std::ranges::any_of(
      *table, [&](const mounts::Mount& one) { return mounts::is_mount(one, *seen) && one.target == target; });
  if (!is_there) return fail(Errc::Unavailable, "it is not mounted on " + printable(target) + " any more");
  return target;
}

// Before it is mounted otherwise: this host still holds what the daemon saw.
Result<> check_unchanged(const json::object& request, std::uint64_t closed) {
  const auto answer = probe_verb(request, {});
  if (!answer) return answer.take_error();
  const auto now = from_message<mounts::Superblock>(*answer);
  if (!now) return now.take_error();
  const std::string device = get_shown(request, "device");
  const auto stamp = closed != 0 ? closed : static_cast<std::uint64_t>(get_int(request, "stamp").value_or(0));
  if (now->uuid != get_string(request, "uuid"))
    return fail(Errc::Refused, device + " holds another file system by now");
  if (stamp != 0 && stamp != now->stamp)
    return fail(Errc::Refused, "another host has written to " + device + " meanwhile");
  if (get_object(request, "keep_reservation") == nullptr) return {};
  const auto holding = member_of<nvmetcp::ReservationState>(*answer, "reservation");
  if (!holding) return holding.take_error();
  if (holding->hold == nvmetcp::Hold::Ours) return {};
  return fail(Errc::Unavailable, "this host does not hold the reservation of " + device + " any more",
              "try again when the volume is ready");
}

// remounted: {"target", "mounted", "device", "host", "alone", "uuid", "stamp", "keep_reservation"?}
Result<mounts::Remounted> remounted_in(const json::object& request) {
  auto target = own_mount_in(request);
  if (!target) return target.take_error();
  return mounts::Remounted{std::move(*target),
                           get_text(request, "device"),
                           get_text(request, "host"),
                           SystemClock().wall(),
                           get_bool(request, "alone").value_or(true),
                           [request](std::uint64_t closed) { return check_unchanged(request, closed); }};
}

// Queries the server's free space; if the server no longer knows the handle, the mount is permanently dead.
Result<json::object> probe_nfs(const std::string& path) {
  const auto before = std::chrono::steady_clock::now();
  struct statvfs space {};
  const bool failed = ::statvfs(path.c_str(), &space) != 0;
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - before;
  if (failed && errno != ESTALE) return fail_errno(errno, "asking " + printable(path) + " for its space");
  return json::object{{"us", took.count()}, {"shut_down", failed}};
}

// Other hosts see the writer of an xfs by this alone until it has written. What is in the way can only be
// reached by a mount.
Result<> announce(const mounts::MountRequest& mount, const json::object& request, std::string& warning) {
  if (mount.read_only || mount.type.starts_with("nfs")) return {};
  auto said = mounts::announce_writer(mount.target, get_text(request, "host"), SystemClock().wall());
  if (said) return {};
  Error error = said.error();
  if (mount.type != "xfs") {
    warning = error.message();
    return {};
  }
  const std::string target = printable(mount.target.native());
  if (error.kind == Errc::Refused)
    error.hint = "`sudo mount " + printable(mount.source) + " " + target +
                 "`, move it away, and `sudo umount " + target + "`";
  return fail(std::move(error));
}

// Records a successful mount: the writer's name, and the pin.
Result<> note_mount(const mounts::MountRequest& mount, const json::object& request, std::string& warning) {
  if (auto said = announce(mount, request, warning); !said) return said;
  const auto pin_file = get_string(request, "pin_file");
  if (!pin_file) return {};
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(*pin_file).parent_path(), ignored);
  const json::object* pin = get_object(request, "pin");
  const std::string content = pin == nullptr ? "" : json::serialize(*pin) + "\n";
  if (auto written = write_file_atomically(*pin_file, content); !written)
    return fail_with(std::move(written.error()), "recording the volume's file system");
  return {};
}

struct Unmounted {
  Change change = Change::Done;
  std::string users;  // processes that still use the detached mount
};

Result<Unmounted> unmount(const std::string& target, const mounts::MountNumbers& seen, mounts::Unmount how) {
  if (const auto there = is_still_there(target, seen); !there)
    return fail_with(there.error(), "unmounting " + printable(target));
  Unmounted done;
  if (how != mounts::Unmount::Plain) done.users = users_of_mount(target);
  const auto change = mounts::unmount(target, how);
  if (!change) return change.take_error();
  done.change = *change;
  return done;
}

}  // namespace

// {"device"} → superblock
Result<json::object> superblock_verb(const json::object& request, const ProgressLine& /*progress*/) {
  return mounts::read_superblock(get_text(request, "device")).map(to_message<mounts::Superblock>);
}

// {"mount": request, "host", "pin_file"?, "pin"?} → {"done", "users"?, "warning"?}: processes that still use
// the dead mount that was replaced. The pin is written only after a successful mount: it records the volume's
// file system from now on.
Result<json::object> mount_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto wanted = member_of<mounts::MountRequest>(request, "mount");
  if (!wanted) return wanted.take_error();
  const mounts::MountRequest& mount = *wanted;
  Unmounted dead;
  if (const auto& replaced = mount.replaces) {
    auto gone = unmount(mount.target, {replaced->id, replaced->device},
                        replaced->detach ? mounts::Unmount::Detach : mounts::Unmount::Plain);
    if (!gone) return gone.take_error();
    dead = std::move(*gone);
  }
  auto change = mounts::mount(mount);
  if (!change) return change.take_error();
  std::string warning;
  if (auto noted = note_mount(mount, request, warning); !noted) {
    // The caller treats it as not mounted, and releases its fence.
    if (*change == Change::Done) std::ignore = mounts::unmount(mount.target, mounts::Unmount::Plain);
    return noted.take_error();
  }
  json::object answer = to_json(*change);
  if (!dead.users.empty()) answer["users"] = dead.users;
  if (!warning.empty()) answer["warning"] = warning;
  return answer;
}

// {"target", "mounted": {"id", "device"}, "how"} → {"done", "users"?}: processes that still use the detached
// mount.
Result<json::object> unmount_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto seen = member_of<mounts::MountNumbers>(request, "mounted");
  const auto how = unmount_from_string(get_text(request, "how"));
  if (!how) return how.take_error();
  if (!seen) return seen.take_error();
  const auto done = unmount(get_text(request, "target"), *seen, *how);
  if (!done) return done.take_error();
  json::object answer = to_json(done->change);
  if (!done->users.empty()) answer["users"] = done->users;
  return answer;
}

// {"mount_point", "records", "is_in_use"} → guard
Result<json::object> guard_verb(const json::object& request, const ProgressLine& /*progress*/) {
  return mounts::guard_mount_point({get_text(request, "mount_point"), get_text(request, "records"),
                                    get_bool(request, "is_in_use").value_or(false)})
      .map(to_message<mounts::Guard>);
}

// {"records", "keep": mount points} → {}
Result<json::object> remove_guards_verb(const json::object& request, const ProgressLine& /*progress*/) {
  std::set<std::filesystem::path> keep;
  for (const std::string& point : get_strings(request, "keep")) keep.insert(point);
  return empty_answer(mounts::remove_guards(get_text(request, "records"), keep));
}

// {"target"} → {"users"}; empty means none
Result<json::object> users_verb(const json::object& request, const ProgressLine& /*progress*/) {
  return json::object{{"users", users_of_mount(get_text(request, "target"))}};
}

// {"path", "device", "keep_reservation"?: {"subsystem", "nsid"}} → superblock, "reservation"?: accesses only
// the device, never its mount. Without a device it is an NFS mount → {"us", "shut_down"}.
Result<json::object> probe_verb(const json::object& request, const ProgressLine& progress) {
  const std::string path = get_text(request, "path");
  const std::string device = get_text(request, "device");
  if (device.empty()) return probe_nfs(path);
  const auto superblock = mounts::probe_superblock(device);
  if (!superblock) return superblock.take_error();
  json::object answer = to_message(*superblock);
  if (const json::object* keep = get_object(request, "keep_reservation")) {
    json::object act = *keep;
    act["act"] = "keep";
    act["device"] = device;
    auto kept = reservation_verb(act, progress);
    if (!kept) return kept;
    answer["reservation"] = std::move(*kept);
  }
  return answer;
}

// {"target", "mounted"} → state; also of a folder's bind mount
Result<json::object> mounted_state_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const std::string target = get_text(request, "target");
  const auto seen = member_of<mounts::MountNumbers>(request, "mounted");
  if (!seen) return seen.take_error();
  const auto table = mounts::read_mount_table({});
  if (!table) return table.take_error();
  const mounts::Mount* top = mounts::mounted_at(*table, target);
  if (top == nullptr || top->id != seen->id || top->device_number != seen->device)
    return fail(Errc::Refused, printable(target) + " does not lead to that mount any more");
  return mounts::read_mounted_state(target).map(to_message<mounts::MountedState>);
}

// {"target", "mounted"} → {}
Result<json::object> flush_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto target = own_mount_in(request);
  if (!target) return target.take_error();
  return empty_answer(flush_file_system(*target));
}

// {remounted, "then_write"} → {"published", "stamp"}
Result<json::object> publish_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const bool then_write = get_bool(request, "then_write").value_or(false);
  const auto mount = remounted_in(request);
  if (!mount) return mount.take_error();
  return mounts::publish(*mount, then_write ? mounts::AfterPublish::Writable : mounts::AfterPublish::ReadOnly)
      .map(to_message<mounts::Closed>);
}

// {remounted} → {}
Result<json::object> make_writable_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto mount = remounted_in(request);
  if (!mount) return mount.take_error();
  return empty_answer(mounts::make_writable(*mount));
}

// {"target", "mounted", "device"} → {}
Result<json::object> stop_writing_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const auto target = own_mount_below(request);
  if (!target) return target.take_error();
  return empty_answer(mounts::shut_down_filesystem(*target, get_text(request, "device")));
}

// {"file", "content"} → {}
Result<json::object> record_verb(const json::object& request, const ProgressLine& /*progress*/) {
  const std::filesystem::path file = get_text(request, "file");
  const json::object* content = get_object(request, "content");
  if (content == nullptr) return fail(Errc::Invalid, "record worker: no content in the request");
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  return empty_answer(write_file_atomically(file, json::serialize(*content) + "\n"));
}

}  // namespace spark::workers
