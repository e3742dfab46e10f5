// The device, its reservation and the state folder, as daemon/volumes/adapters and the workers treat them.
#include <algorithm>
#include <cerrno>

#include "tests/histories/volumes/mount_work.hpp"

namespace spark::histories {
namespace {

constexpr Duration kSuperblock{10'000}, kProbe{5'000}, kMountedState{2'000}, kStopWriting{20'000},
    kReservation{15'000}, kRecord{30'000},
    kFlush = std::chrono::hours(24);  // none in the product

using Reserved = Result<nvmetcp::ReservationState>;

// By a file system, mounted or not yet closed.
bool is_claimed(Host& host, const HeadPtr& head) {
  const auto all = host.mounts.supers();
  return std::ranges::any_of(all, [&](const SuperPtr& one) { return one->head == head; });
}

Reserved act_on(Host& host, const HeadPtr& head, const volumes::NamespaceOf& of,
                Reserved (*act)(nvmetcp::ReservationCommands&, const nvmetcp::LocalRegistrant&)) {
  if (head->subsystem != of.subsystem)
    return fail(Errc::Unavailable,
                head->path() + " belongs to " + head->subsystem + " now, not to " + of.subsystem);
  sim::SimulatedReservations commands(head->disk->reservations, host.driver.identity().id);
  return act(commands, host.registrant());
}

Reserved release(nvmetcp::ReservationCommands& commands, const nvmetcp::LocalRegistrant& us) {
  const auto released = nvmetcp::release_reservation(commands, us);
  if (!released) return released.take_error();
  return nvmetcp::look_at_reservation(commands, us);
}

}  // namespace

std::variant<Pause, Result<HeadPtr>> answering(Host& host, const std::string& device) {
  const HeadPtr head = host.driver.head_of(device);
  if (!head)
    return Result<HeadPtr>(fail(Errc::NotFound, "opening " + device + ": No such file or directory"));
  if (host.driver.io(*head) == Io::Blocked) return Pause{kLooksAgain, true};
  ++head->completed;
  head->answered = host.scene.time.steady();
  return Result<HeadPtr>(head);
}

Turn<void> look_again(Host& host, const volumes::Remount& mount) {
  auto device = answering(host, mount.device);
  if (const Pause* pause = std::get_if<Pause>(&device)) return *pause;
  const auto& head = std::get<Result<HeadPtr>>(device);
  if (!head) return Result<>(fail(head.error()));
  const auto superblock = superblock_of(*(*head)->disk);
  if (superblock.uuid != mount.uuid)
    return Result<>(fail(Errc::Refused, mount.device + " holds another file system by now"));
  if (mount.stamp != 0 && mount.stamp != superblock.stamp)
    return Result<>(fail(Errc::Refused, "another host has written to " + mount.device + " meanwhile"));
  if (!mount.reservation) return Result<>();
  const auto kept = act_on(host, *head, *mount.reservation, nvmetcp::keep_reservation);
  if (!kept) return Result<>(fail(kept.error()));
  if (kept->hold == nvmetcp::Hold::Ours) return Result<>();
  return Result<>(
      fail(Errc::Unavailable, "this host does not hold the reservation of " + mount.device + " any more"));
}

asio::awaitable<Result<mounts::Superblock>> HostDevice::read_superblock(std::string device) {
  auto work = [&host = host_, device]() -> Turn<mounts::Superblock> {
    auto answer = answering(host, device);
    if (const Pause* pause = std::get_if<Pause>(&answer)) return *pause;
    const auto& head = std::get<Result<HeadPtr>>(answer);
    if (!head) return Result<mounts::Superblock>(fail(head.error()));
    auto superblock = superblock_of(*(*head)->disk);
    superblock.is_claimed = is_claimed(host, *head);
    return Result<mounts::Superblock>(std::move(superblock));
  };
  Work<mounts::Superblock> asked = std::move(work);
  co_return co_await host_.workers.run(volume_, "superblock", kSuperblock, std::move(asked));
}

asio::awaitable<Result<volumes::ProbeAnswer>> HostDevice::probe(volumes::ProbeRequest request) {
  auto work = [&host = host_, request]() -> Turn<volumes::ProbeAnswer> {
    using Done = Result<volumes::ProbeAnswer>;
    auto device = answering(host, request.device);
    if (const Pause* pause = std::get_if<Pause>(&device)) return *pause;
    const auto& head = std::get<Result<HeadPtr>>(device);
    if (!head) return Done(fail(head.error()));
    volumes::ProbeAnswer answer;
    answer.superblock = superblock_of(*(*head)->disk);
    if (!request.keep_reservation) return Done(answer);
    auto kept = act_on(host, *head, *request.keep_reservation, nvmetcp::keep_reservation);
    if (!kept) return Done(kept.take_error());
    answer.holding = *kept;
    return Done(answer);
  };
  Work<volumes::ProbeAnswer> asked = std::move(work);
  co_return co_await host_.workers.run(volume_, "probe", kProbe, std::move(asked));
}

asio::awaitable<Result<mounts::MountedState>> HostDevice::mounted_state(std::filesystem::path target,
                                                                        mounts::MountNumbers seen) {
  auto work = [&host = host_, target = target.native(), seen]() -> Turn<mounts::MountedState> {
    const MountEntry& reached = host.mounts.resolve(target);
    mounts::MountedState state;
    if (!reached.super || reached.shown.id != seen.id)
      return Result<mounts::MountedState>(fail(Errc::Refused, "another file system is mounted there"));
    if (reached.super->is_alive() && host.driver.io(*reached.super->head) == Io::Blocked)
      return Pause{kLooksAgain, true};
    state.is_shut_down = !reached.super->is_alive();
    state.uuid = reached.super->uuid;
    state.damage = reached.super->damage;
    if (reached.root == "/" && !state.is_shut_down) state.published = reached.super->published;
    state.is_written_since = reached.super->head->disk->fs.is_writer_announced;
    return Result<mounts::MountedState>(state);
  };
  Work<mounts::MountedState> asked = std::move(work);
  // A subject of its own: a worker that waits for other programs says nothing about the device.
  co_return co_await host_.workers.run(volume_ + " (mount)", "mounted-state", kMountedState,
                                       std::move(asked));
}

asio::awaitable<Result<>> HostDevice::flush(volumes::OwnMount mount) {
  auto work = [&host = host_, mount, super = SuperPtr()]() mutable -> Turn<void> {
    if (!super) {  // it flushes what it opened, even if another mount hides that by then
      if (auto there = check_still_there(host, mount); !there) return there;
      super = host.mounts.top_at(mount.target().native())->super;
    }
    if (!super || !super->is_alive()) return Result<>(fail_errno(EIO, "flushing " + mount.target().native()));
    if (super->dirty.empty()) return Result<>();
    if (host.driver.io(*super->head) == Io::Blocked) return Pause{kLooksAgain, true};
    if (super->flush > Duration(0)) {
      ++super->head->completed;
      return Pause{super->take_flush(), true};
    }
    // If a person has unmounted it meanwhile, its kernel writes the same.
    const bool is_mounted = host.mounts.is_mounted(*super);
    (void)host.file_systems.flush(*super, is_mounted ? Actor::Daemon : Actor::Fault);
    return Result<>();
  };
  Work<void> asked = std::move(work);
  co_return co_await host_.workers.run(volume_, "flush", kFlush, std::move(asked));
}

asio::awaitable<Result<>> HostDevice::stop_writing(volumes::OwnMount mount, std::string /*device*/) {
  auto work = [&host = host_, mount]() -> Turn<void> {
    auto& all = host.mounts.entries();
    const auto own = std::ranges::find_if(all, [&](const MountEntry& one) {
      return one.shown.target == mount.target() && is_seen(one, {mount.id(), mount.device_number()});
    });
    if (own == all.end() || own->super->head->is_gone)
      return Result<>(fail_errno(ENOENT, "stopping all writes to " + mount.target().native()));
    host.file_systems.shut_down(*own->super, Actor::Daemon, "the daemon stops all writes");
    return Result<>();
  };
  Work<void> asked = std::move(work);
  co_return co_await host_.workers.run(volume_, "stop-writing", kStopWriting, std::move(asked));
}

std::optional<std::uint64_t> HostDevice::completed_io(const std::string& device,
                                                      const std::vector<std::string>& /*controllers*/) {
  const HeadPtr head = host_.driver.head_of(device);
  if (!head) return std::nullopt;
  return head->completed;
}

asio::awaitable<Result<nvmetcp::ReservationState>> HostDevice::reserve(volumes::ReservationRequest request) {
  auto work = [&host = host_, request]() -> Turn<nvmetcp::ReservationState> {
    // Unlike a read, such a command does not wait for a link that the kernel knows to be down, and is not
    // sent again when it is back (REQ_FAILFAST_DRIVER).
    const HeadPtr known = host.driver.head_of(request.device);
    if (known && !host.driver.has_live_path(*known))
      return Reserved(fail_errno(EIO, "reading the reservation of " + request.device));
    auto device = answering(host, request.device);
    if (const Pause* pause = std::get_if<Pause>(&device)) return *pause;
    const auto& head = std::get<Result<HeadPtr>>(device);
    if (!head) return Reserved(fail(head.error()));
    using volumes::ReservationAct;
    if (request.act == ReservationAct::Release && is_claimed(host, *head))
      return Reserved(fail(Errc::Refused, request.device + " is still in use on this host"));
    return act_on(host, *head, request.of,
                  request.act == ReservationAct::Hold   ? nvmetcp::hold_reservation
                  : request.act == ReservationAct::Take ? nvmetcp::take_reservation
                  : request.act == ReservationAct::Look ? nvmetcp::look_at_reservation
                                                        : release);
  };
  Work<nvmetcp::ReservationState> asked = std::move(work);
  co_return co_await host_.workers.run(volume_, "reservation", kReservation, std::move(asked));
}

Result<volumes::FilesystemIdentity> HostStore::pinned_identity() {
  if (!host_.state.pins.contains(volume_)) pinned_.reset();
  return pinned_.value_or(volumes::FilesystemIdentity{});
}

HostStore::HostStore(Host& host, std::string volume) : host_(host), volume_(std::move(volume)) {
  const auto pin = host_.state.pins.find(volume_);
  if (pin != host_.state.pins.end()) pinned_ = pin->second;
}

asio::awaitable<Result<>> HostStore::pin(volumes::FilesystemIdentity identity) {
  auto work = [&host = host_, volume = volume_, identity]() -> Turn<void> {
    if (identity == volumes::FilesystemIdentity{}) {
      host.state.pins.erase(volume);
      return Result<>();
    }
    auto room = host.state.check_room("recording the volume's file system");
    if (room) host.state.pins[volume] = identity;
    if (!room) host.state.not_pinned.insert(volume);
    return Result<>(std::move(room));
  };
  Work<void> asked = std::move(work);
  auto pinned = co_await host_.workers.run(volume_, "record", kRecord, std::move(asked));
  if (pinned) pinned_ = std::move(identity);
  co_return pinned;
}

asio::awaitable<Result<>> HostStore::save_intent(volumes::Intent intent) {
  auto work = [&host = host_, volume = volume_, intent]() -> Turn<void> {
    if (intent.up) {  // its file is removed
      host.state.intents.erase(volume);
      return Result<>();
    }
    const auto before = host.state.intents.find(volume);
    const bool is_there = before != host.state.intents.end() && before->second.since == intent.since;
    auto room = host.state.check_room("writing the record");
    if (intent.is_released && is_there) room = {};  // a file is removed
    if (room) host.state.intents[volume] = intent;
    return Result<>(std::move(room));
  };
  Work<void> asked = std::move(work);
  co_return co_await host_.workers.run(volume_, "record", kRecord, std::move(asked));
}

Result<volumes::Intent> HostStore::saved_intent() {
  const auto saved = host_.state.intents.find(volume_);
  return saved == host_.state.intents.end() ? volumes::Intent{} : saved->second;
}

asio::awaitable<Result<>> HostStore::save(volumes::Record kind, json::object record) {
  auto work = [&host = host_, kind, volume = volume_, record]() -> Turn<void> {
    if (record.empty()) {
      host.state.records.erase({volume, kind});
      return Result<>();
    }
    auto room = host.state.check_room("writing the record");
    if (room) host.state.records[{volume, kind}] = record;
    return Result<>(std::move(room));
  };
  Work<void> asked = std::move(work);
  co_return co_await host_.workers.run(volume_, "record", kRecord, std::move(asked));
}

json::object HostStore::saved(volumes::Record kind) {
  const auto saved = host_.state.records.find({volume_, kind});
  return saved == host_.state.records.end() ? json::object{} : saved->second;
}

}  // namespace spark::histories
