#include "daemon/mounts/publish.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"
#include "daemon/mounts/filesystems/block_device.hpp"
#include "daemon/mounts/filesystems/mmp_claim.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"
#include "daemon/mounts/libmount_call.hpp"
#include "daemon/mounts/mount_errors.hpp"
#include "daemon/mounts/users.hpp"

namespace spark::mounts {
namespace {

struct Place {
  std::vector<Mount> table;
  const Mount* mount = nullptr;
};

// The mount there, if it is of the device.
Result<Place> find(const std::filesystem::path& target, const std::string& device, const std::string& doing) {
  const auto number = device_number_of(device);
  if (!number) return fail_with(number.error(), doing);
  auto table = read_mount_table({});
  if (!table) return fail_with(table.error(), doing);
  Place place{std::move(*table), nullptr};
  place.mount = mounted_at(place.table, target);
  if (place.mount == nullptr || place.mount->device_number != *number) {
    return fail(Errc::Unavailable, doing + ": " + printable(device) + " is not mounted there",
                "`findmnt " + printable(target.native()) + "` shows the mount");
  }
  return place;
}

Result<> remount_read_only(const Place& place, const std::string& doing) {
  const MountOutcome outcome = call_remount(*place.mount, true);
  if (outcome.done()) return {};
  if (outcome.error_number != EBUSY) return fail_errno(outcome.error_number, doing);
  const std::string users = describe_users(users_of({}, *place.mount), place.table, *place.mount);
  return fail(Errc::Refused,
              doing + ": a program has a file open for writing there (in use by " + users + ")",
              "let it close its files, and publish again; nothing was published");
}

// The stamp that a reader's probe compares.
Result<std::uint64_t> closed_stamp(const std::string& device, const std::string& doing) {
  const auto superblock = probe_superblock(device);
  if (!superblock) return fail_with(superblock.error(), doing);
  if (!superblock->being_written && !superblock->mmp_open) return superblock->stamp;
  return fail(Errc::Failed, doing + ": " + printable(device) + " still says that a writer has it open",
              "publish again; readers do not take it until it is closed");
}

// It was closed by its last writer, so another host may claim it at the same moment.
Result<> claim(const Remounted& mount) {
  auto superblock = probe_superblock(mount.device);
  if (!superblock) return superblock.take_error();
  if (!mount.alone || !superblock->has_mmp) return {};
  superblock->mmp_open = false;  // or another host's claim
  return claim_by_mmp(mount.device, mount.host, mmp_wait(*superblock, true));
}

// Everything that has to hold before the kernel makes it writable.
Result<Place> prepare_writing(const Remounted& mount, std::uint64_t stamp, const std::string& doing) {
  auto place = find(mount.target, mount.device, doing);
  if (!place) return place;
  if (auto set = set_device_read_only(mount.device, false); !set) return fail_with(set.error(), doing);
  if (auto claimed = claim(mount); !claimed) return fail_with(claimed.error(), doing);
  if (auto may = mount.check(stamp); !may) return fail_with(may.error(), doing);
  return place;
}

// An ext4 shows its writer without the announcement.
Result<> remount_writable(const Remounted& mount, const Place& place, const std::string& doing) {
  KernelLog log{SystemRoot{}};
  const MountOutcome outcome = call_remount(*place.mount, false);
  if (outcome.done()) {
    auto announced = announce_writer(mount.target, mount.host, mount.now);
    return place.mount->type == "ext4" ? Result<>() : announced;
  }
  const std::string words = kernel_words(outcome, log, mount.device, place.mount->type);
  return fail_errno(outcome.error_number, doing + (words.empty() ? "" : " (" + words + ")"),
                    "`spark-stage volumes down` and `volumes up` remount it");
}

std::string making_writable(const Remounted& mount) {
  return "making " + printable(mount.target.native()) + " writable";
}

// Its programs wait for it, and the check needs an answer of the target, and perhaps of the daemon's next
// probe. The remount itself is tried once: it may have changed the superblock that the check compares.
Result<> make_writable_again(const Remounted& mount, std::uint64_t stamp) {
  const auto end = std::chrono::steady_clock::now() + kReopening;
  const std::string doing = making_writable(mount);
  for (;;) {
    const auto place = prepare_writing(mount, stamp, doing);
    if (place) return remount_writable(mount, *place, doing);
    if (place.error().kind == Errc::Refused || std::chrono::steady_clock::now() >= end)
      return fail(place.error());
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace

Result<Closed> publish(const Remounted& mount, AfterPublish then) {
  const auto& [target, device, host, now, alone, check] = mount;
  const std::string doing = "publishing " + printable(target.native());
  const auto place = find(target, device, doing);
  if (!place) return place.take_error();
  // The long part, while programs may still write.
  if (auto flushed = flush_file_system(target); !flushed) return fail_with(flushed.error(), doing);
  const auto before = read_published(target);
  if (!before) return fail_with(before.error(), doing);
  const Published published{(*before ? (*before)->generation : 0) + 1, host, rfc3339(now)};
  if (auto may = check(0); !may) {
    Error error = may.error();
    error.kind = Errc::Unavailable;  // nothing was changed
    return fail_with(std::move(error), doing);
  }
  if (auto written = write_published(target, published); !written) return fail_with(written.error(), doing);
  auto closed = withdraw_writer(target);
  closed = closed ? remount_read_only(*place, doing) : fail_with(closed.error(), doing);
  if (!closed) {
    std::ignore = *before ? write_published(target, **before) : remove_published(target);
    std::ignore = announce_writer(target, host, now);
    return closed.take_error();
  }
  const auto stamp = closed_stamp(device, doing);
  Result<> done;
  if (!stamp) done = fail(stamp.error());
  if (done && then == AfterPublish::ReadOnly) {
    done = set_device_read_only(device, true);
    if (!done) done = fail_with(done.error(), doing);
  }
  if (!done) {
    std::ignore = make_writable(mount);
    return done.take_error();
  }
  Closed state{published, *stamp, ""};
  if (then == AfterPublish::ReadOnly) return state;
  if (auto writable = make_writable_again(mount, *stamp); !writable) {
    const auto left = find(target, device, doing);
    if (!left || !is_read_only(*left->mount)) return writable.take_error();
    state.not_writable = writable.error().message();
  }
  return state;
}

Result<> make_writable(const Remounted& mount, std::uint64_t stamp) {
  const std::string doing = making_writable(mount);
  const auto place = prepare_writing(mount, stamp, doing);
  if (!place) return fail(place.error());
  return remount_writable(mount, *place, doing);
}

}  // namespace spark::mounts
