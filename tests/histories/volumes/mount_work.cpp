#include "tests/histories/volumes/mount_work.hpp"

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "daemon/mounts/mount_errors.hpp"

namespace spark::histories {
Turn<void> MmpClaim::turn() {
  FileSystem& fs = head_->disk->fs;
  if (host_.driver.io(*head_) == Io::Gone) return Result<>(fail(Errc::Failed, "claiming: I/O error"));
  if (host_.driver.io(*head_) != Io::Good) return Pause{kLooksAgain, true};
  if (!host_.driver.may_write(*head_)) return Result<>(fail(Errc::Failed, "claiming: Invalid exchange"));
  const bool has_watched = is_watching_ && fs.mmp_open && fs.mmp_sequence == sequence_;
  if (!is_begun_ || has_watched) {
    if (fs.mmp_open && !fs.is_mmp_claim) return Result<>();
    is_begun_ = true;
    is_watching_ = fs.mmp_open && !has_watched;  // the claim of another host
    const Duration wait(std::chrono::seconds(2 * fs.mmp_interval + 1));
    if (!is_watching_) {
      fs.mmp_sequence = host_.scene.random.below(0x7FFFFFFF);
      fs.mmp_open = fs.is_mmp_claim = true;
      fs.mmp_node = host_.name;
    }
    sequence_ = fs.mmp_sequence;
    return Pause{wait, false};
  }
  if (is_watching_ || fs.mmp_sequence != sequence_ || fs.mmp_node != host_.name)
    return Result<>(fail(Errc::Refused,
                         "claiming: host '" + fs.mmp_node + "' has opened it in the same moment",
                         "it is tried again; the other host may have it by then"));
  fs.mmp_open = fs.is_mmp_claim = false;
  return Result<>();
}

void announce_writer(FileSystem& fs) {
  fs.is_open = fs.is_writer_announced = true;
  if (fs.type == "xfs") ++fs.stamp;
}

bool is_seen(const MountEntry& entry, const Seen& seen) {
  return entry.shown.device_number == seen.device && (seen.id == 0 || entry.shown.id == seen.id);
}

Result<> check_still_there(Host& host, const volumes::OwnMount& mount) {
  const std::string target = mount.target().native();
  const MountEntry* top = host.mounts.top_at(target);
  if (top == nullptr) return fail(Errc::Unavailable, "nothing is mounted on " + target + " any more");
  if (is_seen(*top, {mount.id(), mount.device_number()})) return {};
  return fail(Errc::Refused, target + ": " + top->shown.source + " was mounted there meanwhile");
}

Result<Change> start_unmount(Host& host, const std::string& target, mounts::Unmount how,
                             std::optional<Seen> seen, std::string& users, SuperPtr& closing) {
  const std::string doing = "unmounting " + target;
  const MountEntry* top = host.mounts.top_at(target);
  if (seen && top != nullptr && !is_seen(*top, *seen))
    return fail(Errc::Refused, doing + ": " + top->shown.source + " was mounted there meanwhile");
  if (top == nullptr) return Change::AlreadyThere;
  const bool is_plain = how == mounts::Unmount::Plain;
  if (!is_plain) users = top->files.empty() ? "" : users_of(host, *top);
  for (const MountEntry& other : host.mounts.entries()) {
    const bool is_same =
        other.shown.device_number == top->shown.device_number && other.shown.target != top->shown.target;
    if (is_plain && is_same && !(top->super && top->super->is_dead))
      return fail(Errc::Refused,
                  doing + ": its file system is mounted at " + other.shown.target.native() + " too",
                  "unmount it there first: umount " + other.shown.target.native());
  }
  const MountEntry before = host.mounts.resolve(target);
  const bool is_left_to_users = !is_plain && !top->files.empty() && host.holds_dead(target);
  const int error = is_plain ? host.mounts.unmount(target, closing) : host.mounts.detach(target);
  if (error == EBUSY)
    return fail(Errc::Refused, doing + ": it is in use by " + users_of(host, *top),
                "end them, or let them leave it, and try again");
  if (error != 0) return fail_errno(error, doing);
  host.scene.tell("  " + host.name + ": the daemon " + (is_plain ? "unmounts " : "detaches ") +
                  before.shown.source + " from " + target);
  const bool is_foreign = before.while_down || !before.super || before.root != "/";
  const bool is_dead = before.super && before.super->is_dead;
  if (is_foreign)
    host.scene.judge.broken(is_dead ? "dead-foreign-unmounted" : "foreign-unmounted",
                            host.name + ": " + before.shown.source + " was unmounted from " + target +
                                ", and another program had mounted it");
  if (!is_plain && before.super && before.super->is_alive() &&
      !host.file_systems.has_lost_fence(*before.super))
    host.scene.judge.broken("live-mount-detached", host.name + ": " + target + " was detached, and not dead");
  if (is_left_to_users)
    host.scene.judge.broken("held-mount-detached", host.name + ": " + target + " was detached under " +
                                                       users + ", although its volume has `on_loss: hold`");
  return Change::Done;
}

MountWork::MountWork(Host& host, std::string volume, mounts::MountRequest request,
                     volumes::FilesystemIdentity identity)
    : host_(host), volume_(std::move(volume)), request_(std::move(request)), identity_(std::move(identity)) {}

Turn<volumes::Mounted> MountWork::turn() {
  switch (stage_) {
    case Stage::Replace: {
      if (auto replaced = replace(); !replaced) return Done(replaced.take_error());
      stage_ = Stage::Check;
      return Pause{kSystemCall, true};
    }
    case Stage::Check:
      return check();
    case Stage::Claim:
      return claim();
    case Stage::Protect:
      return protect();
    case Stage::Mount:
      return mount();
    case Stage::Announce:
      return announce();
    case Stage::Pin:
      break;
  }
  return pin();
}

Result<> MountWork::replace() {
  if (!request_.replaces) return {};
  const auto how = request_.replaces->detach ? mounts::Unmount::Detach : mounts::Unmount::Plain;
  SuperPtr closing;
  const Seen seen{request_.replaces->id, request_.replaces->device};
  const auto gone = start_unmount(host_, request_.target, how, seen, mounted_.users, closing);
  if (!gone) return gone.take_error();
  if (closing) (void)host_.file_systems.close(*closing, Actor::Daemon);
  return {};
}

// Nothing else is mounted there, and the device nowhere else in the other way.
Result<> MountWork::check_place() {
  const std::string doing = mounts::doing(request_);
  if (const MountEntry* there = host_.mounts.top_at(request_.target)) {
    const bool is_same = there->shown.device_number == head_->device_number() && there->root == "/" &&
                         mounts::is_read_only(there->shown) == request_.read_only;
    if (is_same) {
      mounted_.change = Change::AlreadyThere;
      return {};
    }
    return fail(Errc::Refused, doing + ": " + there->shown.source + " (" + there->shown.type +
                                   ") is mounted there, and is not this volume's present device");
  }
  for (const MountEntry& other : host_.mounts.entries()) {
    if (other.shown.device_number != head_->device_number()) continue;
    if (other.super->read_only == request_.read_only) continue;
    return fail(Errc::Refused, doing + ": the device is mounted at " + other.shown.target.native() + " too",
                "unmount it there first");
  }
  if (!host_.mounts.has_folder(request_.target))
    host_.mounts.folders_at(request_.target).make(request_.target);
  if (!request_.may_hide_files && host_.mounts.folders_at(request_.target).has_files(request_.target))
    return fail(Errc::Refused, doing + ": mount point " + request_.target.native() + " is not empty");
  return {};
}

Turn<volumes::Mounted> MountWork::check() {
  auto device = answering(host_, request_.source);
  if (const Pause* pause = std::get_if<Pause>(&device)) return *pause;
  const auto& head = std::get<Result<HeadPtr>>(device);
  if (!head) return Done(fail_with(head.error(), mounts::doing(request_)));
  head_ = *head;
  if (auto free = check_place(); !free) return Done(free.take_error());
  if (mounted_.change == Change::AlreadyThere) {
    stage_ = Stage::Pin;
    return Pause{kSystemCall, false};
  }
  const FileSystem& fs = head_->disk->fs;
  seen_uuid_ = fs.uuid;
  if (!request_.uuid.empty() && fs.uuid != request_.uuid)
    return Done(fail(Errc::Unavailable, mounts::doing(request_) + ": file system " + fs.uuid +
                                            " is there now, not " + request_.uuid));
  head_->read_only = request_.read_only;
  stage_ = request_.claim_as.empty() ? Stage::Protect : Stage::Claim;
  if (stage_ == Stage::Claim) claim_.emplace(host_, head_);
  return Pause{kSystemCall, false};
}

Turn<volumes::Mounted> MountWork::claim() {
  auto claimed = claim_->turn();
  if (const Pause* pause = std::get_if<Pause>(&claimed)) return *pause;
  auto& result = std::get<Result<>>(claimed);
  if (!result) return Done(fail_with(std::move(result.error()), mounts::doing(request_)));
  stage_ = Stage::Protect;
  return Pause{kSystemCall, false};
}

// The kernel's part: it waits twice if the last writer did not close the file system.
Turn<volumes::Mounted> MountWork::protect() {
  const Io io = host_.driver.io(*head_);
  if (io == Io::Gone) return Done(fail(explain(EIO)));
  if (io == Io::Blocked) return Pause{kLooksAgain, true};
  FileSystem& fs = head_->disk->fs;
  stage_ = Stage::Mount;
  if (request_.read_only || !fs.has_mmp || (waits_ == 0 && !fs.mmp_open)) return Pause{kSystemCall, false};
  if (waits_ > 0 && fs.mmp_sequence != seen_sequence_) return Done(fail(explain(EBUSY)));
  if (waits_ == 2) return Pause{Duration(1), false};
  stage_ = Stage::Protect;
  if (waits_ == 1) {  // from now on other hosts see this one
    if (!host_.driver.may_write(*head_)) return Done(fail(explain(EBADE)));
    fs.mmp_sequence = host_.scene.random.below(0x7FFFFFFF);
    fs.is_mmp_claim = false;
    fs.mmp_node = host_.name;
  }
  ++waits_;
  seen_sequence_ = fs.mmp_sequence;
  return Pause{std::chrono::seconds(2 * fs.mmp_interval + 1), false};
}

Error MountWork::explain(int error_number) const {
  return mounts::explain_block_mount(request_, error_number, superblock_of(*head_->disk), "");
}

Turn<volumes::Mounted> MountWork::mount() {
  if (host_.driver.io(*head_) == Io::Blocked) {
    stage_ = Stage::Protect;  // the kernel reads the block of multi-mount protection when it can
    return Pause{kLooksAgain, true};
  }
  if (head_->disk->fs.uuid != seen_uuid_) return Done(fail(explain(EUCLEAN)));
  const std::string target = request_.target;
  const bool no_recovery = request_.read_only && !request_.keeps_journal;
  const int error = host_.mounts.mount(head_, target, request_.read_only, no_recovery, "noatime", false);
  if (error != 0) return Done(fail(explain(error)));
  host_.scene.tell("  " + host_.name + ": the daemon mounts " + request_.source + " on " + target +
                   (request_.read_only ? " read-only" : " for writing"));
  const MountEntry* top = host_.mounts.top_at(target);
  if (top == nullptr || top->shown.device_number != head_->device_number())
    return Done(fail(Errc::Failed, mounts::doing(request_) + ": reported as done, but is not there"));
  stage_ = request_.read_only ? Stage::Pin : Stage::Announce;
  return Pause{kSystemCall, !request_.read_only};
}

Turn<volumes::Mounted> MountWork::announce() {
  MountEntry& entry = host_.mounts.resolve(request_.target);
  stage_ = Stage::Pin;
  if (!entry.super || entry.super->head != head_) return Pause{kSystemCall, false};
  const auto announced = host_.file_systems.write(*entry.super, Actor::Daemon, announce_writer);
  if (announced == Wrote::Blocked) {
    stage_ = Stage::Announce;
    return Pause{kLooksAgain, true};
  }
  if (announced != Wrote::Done) return Done(fail_errno(EIO, "writing to " + request_.target.native()));
  return Pause{kSystemCall, false};
}

// If it can't be recorded, it is unmounted again.
Turn<volumes::Mounted> MountWork::pin() {
  if (identity_.uuid.empty()) return Done(mounted_);
  if (auto room = host_.state.check_room("recording the volume's file system"); !room) {
    SuperPtr closing;
    std::string unused;
    if (mounted_.change == Change::Done) {
      (void)start_unmount(host_, request_.target, mounts::Unmount::Plain, std::nullopt, unused, closing);
      if (closing) (void)host_.file_systems.close(*closing, Actor::Daemon);
    }
    return Done(room.take_error());
  }
  host_.state.pins[volume_] = identity_;
  return Done(mounted_);
}

}  // namespace spark::histories
