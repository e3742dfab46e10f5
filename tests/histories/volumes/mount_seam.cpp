// The mount points, as daemon/volumes/adapters/worker_mounts.hpp and the workers behind it treat them.
#include <algorithm>
#include <cerrno>

#include "tests/histories/volumes/mount_work.hpp"

namespace spark::histories {
namespace {

constexpr Duration kMount{120'000}, kUnmount{60'000}, kUsers{30'000}, kDetach{40'000}, kGuard{30'000};
constexpr Duration kLongestClaim{2 * 601'000},
    kPublish{Duration(900'000) + kLongestClaim + mounts::kReopening};

constexpr Duration kWorkerStart{100};  // a link may go down between the daemon's look and the call
constexpr Duration kSinceLook{2'500};  // the slowest start of a worker, and another one's end before it

std::string published_at(const Host& host) {
  return rfc3339(host.scene.time.wall());
}

// The mount there, if it is of the device.
Result<MountEntry*> find(Host& host, const std::string& target, const std::string& device,
                         const std::string& doing) {
  const HeadPtr head = host.driver.head_of(device);
  if (!head) return fail(Errc::NotFound, doing + ": there is no " + device);
  MountEntry* top = host.mounts.top_at(target);
  if (top == nullptr || top->shown.device_number != head->device_number() || !top->super)
    return fail(Errc::Unavailable, doing + ": " + device + " is not mounted there");
  return top;
}

// Makes a closed mount writable again, turn by turn.
class WritableWork {
 public:
  WritableWork(Host& host, volumes::Remount mount) : host_(host), mount_(std::move(mount)) {}

  Turn<void> turn() {
    const std::string target = mount_.mount.target(), doing = "making " + target + " writable";
    const auto entry = find(host_, target, mount_.device, doing);
    if (!entry) return Result<>(fail(entry.error()));
    const HeadPtr head = (*entry)->super->head;
    (*entry)->super->is_in_call = is_called_;
    if (host_.driver.io(*head) == Io::Blocked) return Pause{kLooksAgain, true};
    head->read_only = false;
    if (mount_.alone && head->disk->fs.has_mmp && !is_claimed_) {
      if (!claim_) claim_.emplace(host_, head);
      auto claimed = claim_->turn();
      if (const Pause* pause = std::get_if<Pause>(&claimed)) return *pause;
      if (auto& result = std::get<Result<>>(claimed); !result)
        return Result<>(fail_with(std::move(result.error()), doing));
      is_claimed_ = true;
      return Pause{kSystemCall, true};
    }
    if (!std::exchange(is_called_, true)) {
      auto looked = look_again(host_, mount_);
      if (auto* may = std::get_if<Result<>>(&looked); may != nullptr && !*may)
        return Result<>(fail_with(std::move(may->error()), doing));
      return Pause{kSystemCall, true};
    }
    is_remounted_ = true;
    const int error = host_.mounts.remount(**entry, false);
    if (error == 0) (void)host_.file_systems.write(*(*entry)->super, Actor::Daemon, announce_writer);
    (*entry)->super->is_in_call = false;
    if (error != 0) return Result<>(fail_errno(EROFS, doing));
    host_.scene.tell("  " + host_.name + ": " + target + " is writable again");
    return Result<>();
  }
  bool is_called() const { return is_remounted_; }  // the remount itself

 private:
  Host& host_;
  volumes::Remount mount_;
  bool is_claimed_ = false, is_called_ = false, is_remounted_ = false;
  std::optional<MmpClaim> claim_;
};

class PublishWork {
 public:
  PublishWork(Host& host, volumes::Remount mount, mounts::AfterPublish then)
      : host_(host), mount_(mount), target_(mount.mount.target()), then_(then) {}

  Turn<mounts::Closed> turn() {
    using Done = Result<mounts::Closed>;
    if (closed_) return reopen();
    const std::string doing = "publishing " + target_;
    const auto entry = find(host_, target_, mount_.device, doing);
    if (!entry) return Done(fail(entry.error()));
    const MountEntry& reached = host_.mounts.resolve(target_);
    if (reached.super != (*entry)->super) return Done(fail_errno(EROFS, doing + ": flushing it"));
    Super& super = *(*entry)->super;
    if (!super.is_writer()) return Done(fail_errno(super.is_alive() ? EROFS : EIO, doing));
    super.is_in_call = is_called_;
    if (host_.driver.io(*super.head) == Io::Blocked) return Pause{kLooksAgain, true};
    if (!is_called_ && super.flush > Duration(0)) return Pause{super.take_flush(), true};
    if (!std::exchange(is_called_, true)) {
      auto looked = look_again(host_, mount_);
      auto* may = std::get_if<Result<>>(&looked);
      if (may != nullptr && !*may) may->error().kind = Errc::Unavailable;  // nothing was changed
      if (may != nullptr && !*may) return Done(fail_with(std::move(may->error()), doing));
      return Pause{kSystemCall, true};
    }
    auto closed = close(**entry, super, doing);
    super.is_in_call = false;
    return closed;
  }

 private:
  // Tried again for a while; otherwise it is published.
  Turn<mounts::Closed> reopen() {
    if (!writable_) writable_.emplace(host_, mount_);
    auto writable = writable_->turn();
    if (const Pause* pause = std::get_if<Pause>(&writable)) return *pause;
    const auto& result = std::get<Result<>>(writable);
    const bool is_final = writable_->is_called() || (!result && result.error().kind == Errc::Refused);
    if (!result && !is_final && host_.scene.time.steady() < reopens_until_) {
      writable_.reset();
      return Pause{std::chrono::seconds(1), false};
    }
    const MountEntry* top = host_.mounts.top_at(target_);
    if (!result && (top == nullptr || !mounts::is_read_only(top->shown)))
      return Result<mounts::Closed>(fail(result.error()));
    if (!result) closed_->not_writable = result.error().message();
    return Result<mounts::Closed>(*closed_);
  }
  Turn<mounts::Closed> close(MountEntry& entry, Super& super, const std::string& doing) {
    using Done = Result<mounts::Closed>;
    const std::uint64_t before = super.published ? super.published->generation : 0;
    const mounts::Published published{before + 1, host_.name, published_at(host_)};
    const auto wrote = host_.file_systems.write(super, Actor::Daemon, [&](FileSystem& fs) {
      fs.published = published;
      fs.is_writer_announced = false;
      fs.is_open = true;
    });
    if (wrote != Wrote::Done) return Done(fail_errno(EIO, doing));
    super.published = published;
    if (const int error = host_.mounts.remount(entry, true); error != 0) {
      (void)host_.file_systems.write(super, Actor::Daemon,
                                     [](FileSystem& fs) { fs.is_writer_announced = true; });
      if (error != EBUSY) return Done(fail_errno(error, doing));
      return Done(fail(
          Errc::Refused,
          doing + ": a program has a file open for writing there (in use by " + users_of(host_, entry) + ")",
          "let it close its files, and publish again; nothing was published"));
    }
    host_.scene.tell("  " + host_.name + ": " + target_ + " is published as generation " +
                     std::to_string(published.generation));
    closed_ = mounts::Closed{published, super.head->disk->fs.stamp, ""};
    mount_.stamp = closed_->stamp;
    reopens_until_ = host_.scene.time.steady() + mounts::kReopening;
    if (then_ == mounts::AfterPublish::Writable) return Pause{kSystemCall, true};
    super.head->read_only = true;
    return Done(*closed_);
  }

  Host& host_;
  volumes::Remount mount_;
  std::string target_;
  mounts::AfterPublish then_;
  std::optional<WritableWork> writable_;
  SteadyTime reopens_until_{};
  bool is_called_ = false;
  std::optional<mounts::Closed> closed_;
};

}  // namespace

std::string users_of(Host& host, const MountEntry& entry) {
  std::string all;
  const auto add = [&](const std::string& user) { all += (all.empty() ? "" : ", ") + user; };
  for (const MountEntry& other : host.mounts.entries()) {
    if (other.shown.parent_id == entry.shown.id) add("the mount at " + other.shown.target.native());
  }
  for (const OpenFile& file : entry.files) add("python3 (pid " + std::to_string(file.pid) + ", open file)");
  return all.empty() ? "no process that can be seen" : all;
}

asio::awaitable<Result<volumes::Mounted>> HostMounts::mount(mounts::MountRequest request,
                                                            volumes::FilesystemIdentity identity) {
  const Duration limit = kMount + std::chrono::seconds(2 * request.claim_s);
  const auto mount = std::make_shared<MountWork>(host_, volume_, std::move(request), identity);
  auto work = [mount] { return mount->turn(); };
  Work<volumes::Mounted> asked = std::move(work);
  auto mounted = co_await host_.workers.run(volume_, "mount", limit, std::move(asked));
  if (mounted && !identity.uuid.empty()) store_.note_pinned(identity);
  co_return mounted;
}

asio::awaitable<Result<mounts::Guard>> HostMounts::guard(std::filesystem::path mount_point, bool is_in_use) {
  auto work = [&host = host_, target = mount_point.native(), is_in_use]() -> Turn<mounts::Guard> {
    using Done = Result<mounts::Guard>;
    mounts::Guard guard;
    if (host.mounts.top_at(target) == nullptr && !host.mounts.has_folder(target))
      host.mounts.folders_at(target).make(target);
    const MountEntry& reached = host.mounts.resolve(target);
    const bool is_on_root = reached.shown.target == "/";
    // Below a mount, it is reached only if that mount lies on the folder's own.
    const MountEntry* top = host.mounts.top_at(target);
    if (top != nullptr && reached.shown.target.native() != target)
      return Done(fail(Errc::Unsupported, "opening the mount point " + target +
                                              ": it can't be reached below the mount that covers it"));
    if (top == nullptr && !is_on_root) return Done(mounts::Guard{true, "", {}});  // in a tmpfs
    Folder& folder = host.root.at(target);
    guard.files.assign(folder.files.begin(), folder.files.end());
    guard.is_ours = guard.files.empty() || is_in_use || host.state.guards.contains(target);
    if (!guard.is_ours || folder.is_immutable) return Done(guard);
    if (auto room = host.state.check_room("recording the guard of " + target); !room) {
      guard.gap = "programs can write to " + target + " while it is not mounted, to the disk below it";
      return Done(guard);
    }
    host.state.guards.insert(target);
    folder.is_immutable = true;
    return Done(guard);
  };
  Work<mounts::Guard> asked = std::move(work);
  co_return co_await host_.workers.run(volume_, "guard", kGuard, std::move(asked));
}

// The kernel takes the mount from the table first; then it writes what is unwritten, and closes.
asio::awaitable<Result<std::string>> HostMounts::unmount(volumes::OwnMount mount, mounts::Unmount how) {
  auto work = [&host = host_, mount, how, closing = SuperPtr(), users = std::string(),
               begun = false]() mutable -> Turn<std::string> {
    if (!std::exchange(begun, true)) {
      const Seen seen{mount.id(), mount.device_number()};
      const auto started = start_unmount(host, mount.target().native(), how, seen, users, closing);
      if (!started) return Result<std::string>(fail(started.error()));
      if (!closing) return Result<std::string>(users);
      const SteadyTime now = host.scene.time.steady();
      const bool is_new = now - host.driver.changed() < kWorkerStart;
      closing->is_in_call =
          (host.driver.has_live_path(*closing->head) || is_new) && now - closing->head->answered < kSinceLook;
      return Pause{closing->flush + kSystemCall, true};
    }
    const bool writes = closing->is_alive() || closing->writes_superblock();
    if (writes && host.driver.io(*closing->head) == Io::Blocked && !closing->read_only) {
      closing->is_late = true;
      return Pause{kLooksAgain, true};
    }
    (void)host.file_systems.close(*closing, Actor::Daemon);
    return Result<std::string>(users);
  };
  Work<std::string> asked = std::move(work);
  const Duration limit = how == mounts::Unmount::Plain ? kUnmount : kDetach;
  co_return co_await host_.workers.run(volume_, "unmount", limit, std::move(asked));
}

asio::awaitable<Result<std::string>> HostMounts::users(std::filesystem::path target) {
  auto work = [&host = host_, target = target.native()]() -> Turn<std::string> {
    const MountEntry* top = host.mounts.top_at(target);
    const bool is_used = top != nullptr && !top->files.empty();
    return Result<std::string>(is_used ? users_of(host, *top) : "");
  };
  Work<std::string> asked = std::move(work);
  co_return co_await host_.workers.run(volume_, "users", kUsers, std::move(asked));
}

asio::awaitable<Result<mounts::Closed>> HostMounts::publish(volumes::Remount mount,
                                                            mounts::AfterPublish then) {
  const auto publish = std::make_shared<PublishWork>(host_, mount, then);
  auto work = [&host = host_, mount = mount.mount, publish, begun = false]() mutable -> Turn<mounts::Closed> {
    if (auto there = std::exchange(begun, true) ? Result<>() : check_still_there(host, mount); !there)
      return Result<mounts::Closed>(there.take_error());
    return publish->turn();
  };
  Work<mounts::Closed> asked = std::move(work);
  auto closed = co_await host_.workers.run(volume_, "publish", kPublish, std::move(asked));
  const bool is_published =
      then == mounts::AfterPublish::ReadOnly || (closed && !closed->not_writable.empty());
  if (!closed || !is_published) co_return closed;
  auto identity = store_.pinned_identity().value_or(volumes::FilesystemIdentity{});
  identity.is_published = true;
  identity.stamp = closed->stamp;
  (void)co_await store_.pin(std::move(identity));
  co_return closed;
}

asio::awaitable<Result<>> HostMounts::make_writable(volumes::Remount mount) {
  auto identity = store_.pinned_identity().value_or(volumes::FilesystemIdentity{});
  if (std::exchange(identity.is_published,
                    false)) {  // a full state folder may have kept it from being recorded
    if (auto pinned = co_await store_.pin(std::move(identity)); !pinned) co_return pinned;
  }
  const auto writable = std::make_shared<WritableWork>(host_, mount);
  auto work = [&host = host_, mount = mount.mount, writable, begun = false]() mutable -> Turn<void> {
    if (auto there = std::exchange(begun, true) ? Result<>() : check_still_there(host, mount); !there)
      return there;
    return writable->turn();
  };
  Work<void> asked = std::move(work);
  co_return co_await host_.workers.run(volume_, "make-writable", kMount + kLongestClaim, std::move(asked));
}

}  // namespace spark::histories
