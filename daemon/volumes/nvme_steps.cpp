// The steps of an NVMe/TCP volume: offered → connected → namespace → superblock → mounted.
#include <algorithm>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/log.hpp"
#include "daemon/volumes/volume.hpp"
#include "nvmetcp/sysfs/registry.hpp"

namespace spark::volumes {

asio::awaitable<Result<>> Volume::bring_up_nvme() {
  const auto found = co_await find_place();
  const Place place = found.value_or(look_at_mount());
  if (place == Place::Unknown) co_return fail(Errc::Failed, "what is mounted can't be read from mountinfo");
  if (place == Place::Ours && look_at_paths() != Link::Gone) co_return co_await adopt_mount();
  if (place == Place::Broken) {
    if (auto cleared = co_await clear_broken_mount(); !cleared) co_return cleared;
  }

  if (auto reached = co_await reach_subsystem(); !reached) co_return reached;
  if (place == Place::Ours) {  // the device outlived its last controller: a new one may revive it
    if (look_at_mount() == Place::Ours) co_return co_await adopt_mount();
    co_return fail(Errc::Unavailable, "the device under " + settings_.mount.native() + " did not come back");
  }
  auto block = co_await wait_for_namespace();
  if (auto alone = check_no_rival(); !alone) co_return alone;
  if (!block) co_return block.take_error();
  co_return co_await mount_namespace(std::move(*block));
}

// Mounted already: by us before a restart, or by a person. Right if it is the file system and the access
// asked for.
asio::awaitable<Result<>> Volume::adopt_mount() {
  const auto looked = actions_->mount_at(settings_.mount);
  if (!looked) co_return fail(looked.error());
  if (!*looked) co_return fail(Errc::Failed, "the mount vanished while it was looked at");
  const mounts::Mount* mount = &**looked;
  const auto options = split(mount->options, ',');
  const bool is_read_only = std::find(options.begin(), options.end(), "ro") != options.end();
  if (settings_.access == config::Access::ReadOnly && !is_read_only) {
    co_return fail(Errc::Refused,
                   settings_.mount.native() + " is mounted read-write already, and not by spark-stage",
                   "unmount it (and remove its fstab line), then it is mounted read-only by itself");
  }
  if (auto secured = co_await check_keys(); !secured) co_return secured;
  status_.device = mount->source;
  status_.filesystem_type = mount->type;
  if (is_known_) co_return Result<>{};
  if (look_at_paths() != Link::Live) {  // frozen: its superblock is read as soon as that is possible
    status_.filesystem_uuid = actions_->pinned_identity().value_or(FilesystemIdentity{}).uuid;
    co_return Result<>{};
  }
  if (auto free = check_nothing_waits(); !free) co_return free;
  const auto superblock = co_await actions_->read_superblock(status_.device);
  if (!superblock) co_return fail(superblock.error());
  if (auto same = check_identity(*superblock); !same) {
    if (!is_reader()) co_await stop_writing_to(superblock->uuid);
    co_return same;
  }
  status_.filesystem_uuid = superblock->uuid;
  if (const auto pinned = co_await pin_adopted(*superblock); !pinned) log::survived(pinned.error());
  if (is_reader() && !mounts::has_option(mount->super_options, "norecovery")) {
    status_.warnings.push_back(
        settings_.mount.native() +
        " was mounted by somebody else, not as spark-stage does it: `spark-stage volumes down " +
        settings_.name + "`, then `up`, sets the device read-only and replays no journal");
  }
  mounted_stamp_ = actions_->pinned_identity().value_or(FilesystemIdentity{}).stamp;
  Result<> adopted;
  if (is_fenced()) adopted = co_await adopt_fence(*superblock);
  is_known_ = adopted.has_value();
  co_return adopted;
}

// From now on it is this file system, as if it had been mounted by us.
asio::awaitable<Result<>> Volume::pin_adopted(mounts::Superblock superblock) {
  if (actions_->pinned_identity().value_or(FilesystemIdentity{}).uuid == superblock.uuid)
    co_return Result<>{};
  const auto block = actions_->find_namespace(settings_.nvme->subsystem, settings_.nvme->nsid);
  FilesystemIdentity identity{superblock.type,          superblock.uuid,  superblock.filesystem_bytes,
                              block ? block->id() : "", superblock.stamp, false};
  co_return co_await actions_->pin(std::move(identity));
}

// Each question to a device that does not answer would leave one more worker behind.
Result<> Volume::check_nothing_waits() {
  if (!actions_->has_stuck_worker()) return {};
  return fail(Errc::Unavailable, "a question to " + status_.device + " still waits in the kernel",
              "it ends when the target answers, or with its connection");
}

// Whoever made a connection that was there before may have made it without the keys.
asio::awaitable<Result<>> Volume::check_keys() {
  const bool asks_for_keys = !target_->auth.host_key_file.empty() || !target_->tls_psk_file.empty();
  if (!asks_for_keys || look_at_paths() != Link::Live) co_return Result<>{};
  if (auto taken = co_await take_over_paths(); !taken) co_return taken;
  co_return check_paths_secured();
}

Result<> Volume::check_paths_secured() {
  return actions_->check_paths_secured(settings_.nvme->subsystem, config::connect_options(*target_));
}

// Somebody else connected them: with the keys that are asked for, and with our timers from now on, or not
// used.
asio::awaitable<Result<>> Volume::take_over_paths() {
  for (Portal& portal : portals_) {
    if (portals_.size() > 1 && path_of(portal) == nullptr) continue;
    const auto connected = co_await connect_portal(portal.address);
    if (connected) {
      note_path(portal, connected->controller);
      status_.warnings = connected->differences;
    } else if (connected.error().kind == Errc::Refused) {
      co_return fail(connected.error());
    }
  }
  co_return Result<>{};
}

// A controller of ours is live, or every portal is asked in turn until one is.
asio::awaitable<Result<>> Volume::reach_subsystem() {
  if (look_at_paths() == Link::Live) co_return co_await take_over_paths();
  // A retry leaves the last failure's reason in sight: it says more than that it is tried again.
  if (!tried_) {
    set_state(working_state(State::Waiting),
              "reading the discovery log of " + portal_text(portals_.front().address));
  }

  Result<> first_failure;
  for (Portal& portal : portals_) {
    const auto offered = co_await find_offer(portal.address);
    Result<> reached;
    if (!offered) reached = fail(offered.error());
    if (offered) {
      if (auto alone = check_no_rival(); !alone) co_return alone;
      set_state(working_state(State::Connecting), "connecting to " + portal_text(portal.address));
      const auto connected = co_await connect_portal(portal.address);
      if (connected) {
        healed_by_us_ = true;
        note_path(portal, connected->controller);
        status_.warnings = connected->differences;
        co_return Result<>{};
      }
      reached = fail(connected.error());
      if (!offered->empty())
        reached.error().what += "; the target's discovery log has it at " + printable(*offered);
      // Trying again at once gives the kernel no option that it lacks.
      if (reached.error().kind == Errc::Unsupported) reached.error().kind = Errc::Refused;
    }
    if (first_failure) first_failure = std::move(reached);
  }
  if (!first_failure && has_strangers()) {
    first_failure.error().what +=
        "; " + name_strangers() + " is of the same NQN, and no address of target " + printable(target_->name);
  }
  co_return first_failure;
}

// Tells apart: not reached, not offered to this host, offered elsewhere. A target without discovery passes,
// and one with TLS: its key is for the subsystem, and its log would come in clear text. Gives the address
// that the log has for it, if that is another one.
asio::awaitable<Result<std::string>> Volume::find_offer(nvmetcp::Portal portal) {
  if (!target_->tls_psk_file.empty()) co_return std::string();
  const auto log = co_await actions_->discover(portal, target_->interface);
  if (!log) {
    if (log.error().kind == Errc::Unsupported) co_return std::string();
    Error error = log.error();
    if (error.kind == Errc::Unavailable || error.kind == Errc::TimedOut) {
      co_return fail_with(std::move(error), "target " + target_->name + " unreachable");
    }
    co_return fail(std::move(error));
  }

  learn_from(*log);
  const std::string& subsystem = settings_.nvme->subsystem;
  std::string near;
  std::vector<std::string> elsewhere;
  for (const nvmetcp::OfferedSubsystem& entry : log->entries) {
    if (entry.nqn != subsystem || entry.kind != nvmetcp::SubsystemKind::Io || entry.transport != "tcp")
      continue;
    if (entry.portal == portal) co_return std::string();
    // Some targets list an address other than the one they were asked at (0.0.0.0, another NIC): the port
    // decides.
    (entry.portal.port == portal.port ? near : elsewhere.emplace_back()) = portal_text(entry.portal);
  }
  if (!near.empty()) co_return near;
  if (!elsewhere.empty()) {
    co_return fail(Errc::Unavailable,
                   "subsystem " + printable(subsystem) + " is not offered at " + portal_text(portal) +
                       " but at " + printable(join(elsewhere, ", ")),
                   "correct `address` and `port` of target " + target_->name + " in the config");
  }
  const auto host = actions_->host_identity();
  if (!host) co_return fail(host.error());
  co_return fail(Errc::Unavailable,
                 "subsystem " + printable(subsystem) + " is not offered to this host NQN by " +
                     portal_text(portal) + " (it offers " + std::to_string(log->entries.size()) + " others)",
                 "add " + host->nqn + " to the subsystem's allow list on the target, or correct `subsystem`");
}

asio::awaitable<Result<nvmetcp::Namespace>> Volume::wait_for_namespace() {
  const SteadyTime began = clock_.steady(), end = began + pace_.namespace_wait;
  bool has_rescanned = false;
  for (;;) {
    auto block = actions_->find_namespace(settings_.nvme->subsystem, settings_.nvme->nsid);
    is_namespace_missing_ = !block;
    if (block || clock_.steady() >= end || stopped_) co_return block;
    if (!has_rescanned && clock_.steady() - began >= pace_.namespace_rescan) {
      has_rescanned = true;
      co_await rescan_namespaces();
    }
    co_await sleep(pace_.namespace_poll);
  }
}

// What the kernel did not find by itself: see nvmetcp/sysfs/rescan.hpp.
asio::awaitable<void> Volume::rescan_namespaces() {
  const auto all = actions_->controllers(settings_.nvme->subsystem);
  if (!all) co_return;
  for (const nvmetcp::Controller& controller : *all) {
    if (controller.state != "live" || nvmetcp::is_anothers(controller)) continue;
    if (const auto asked = co_await actions_->rescan(controller.name, controller.subsystem); !asked)
      log::survived(asked.error());
  }
}

asio::awaitable<Result<>> Volume::mount_namespace(nvmetcp::Namespace block) {
  status_.device = "/dev/" + block.device;
  is_known_ = false;
  if (auto secured = check_paths_secured(); !secured) co_return secured;
  if (auto free = check_nothing_waits(); !free) co_return free;
  const auto superblock = co_await actions_->read_superblock(status_.device);
  if (!superblock) co_return fail(superblock.error());
  status_.filesystem_type = superblock->type;
  status_.filesystem_uuid = superblock->uuid;
  if (auto same = check_identity(*superblock); !same) co_return same;
  if (auto safe = check_safe_to_mount(*superblock); !safe) co_return safe;
  if (auto armed = co_await arm_fence(*superblock); !armed) co_return armed;

  const bool is_writer = !is_reader();
  const auto wait = is_writer ? mounts::mmp_wait(*superblock, is_alone()) : std::chrono::seconds(0);
  const std::string mmp_wait =
      wait.count() > 0 ? " (multi-mount protection waits " + std::to_string(wait.count()) + " s)" : "";
  set_state(working_state(State::Mounting),
            "mounting " + status_.device + " on " + settings_.mount.native() + mmp_wait);
  mounts::MountRequest request;
  request.source = status_.device;
  request.target = settings_.mount;
  request.type = superblock->type;
  request.uuid = superblock->uuid;
  request.read_only = !is_writer;
  request.keeps_journal = is_published();
  request.options = settings_.options;
  if (is_writer && is_alone() && superblock->has_mmp) request.claim_as = actions_->node_name();
  request.replaces = dead_mount();
  request.may_hide_files = guard_.is_ours;
  FilesystemIdentity identity{superblock->type, superblock->uuid,  superblock->filesystem_bytes,
                              block.id(),       superblock->stamp, is_published()};
  const auto before = actions_->pinned_identity();
  const auto mounted = co_await actions_->mount(std::move(request), std::move(identity));
  if (!mounted) {
    // Whoever else wants it may try; not while a worker that was left behind may still mount it.
    if (is_fresh_hold_ && mounted.error().kind != Errc::TimedOut) co_await give_back();
    co_return fail(with_the_dead_mount(mounted.error()));
  }
  link_trusted_from_ = {};
  healed_by_us_ = is_known_ = true;
  is_broken_ = is_exchanged_ = false;
  fence_lost_.clear();
  left_behind_ = mounted->users;
  mounted_stamp_ = superblock->stamp;
  mmp_node_.clear();
  status_.foreign_writes = is_outdated_ = false;
  if (before) warn_of_change(*before, block);
  co_return Result<>{};
}

// What is checked by now takes its place: until then, what is read and written there gets errors.
std::optional<mounts::DeadMount> Volume::dead_mount() {
  const Standing standing = look_at_place(*actions_, settings_);
  if (standing.place != Place::Dead) return std::nullopt;
  return mounts::DeadMount{standing.top->device_number, may_detach(settings_, standing.place)};
}

// One that is held for its users ends when they do; no person is needed.
Error Volume::with_the_dead_mount(Error error) {
  if (look_at_mount() != Place::Dead) return error;
  if (error.kind == Errc::Refused) error.kind = Errc::Unavailable;
  return fail_with(std::move(error), "the dead mount stays").value();
}

// The same file system under another name: to the kernel it is another disk after every restart of the
// target.
void Volume::warn_of_change(const FilesystemIdentity& before, const nvmetcp::Namespace& block) {
  if (before.namespace_id.empty() || before.namespace_id == block.id()) return;
  status_.warnings.push_back(namespace_name() + " was " + before.namespace_id + " and is now " + block.id() +
                             ", with the same file system: give it a fixed identity on the target (nvmet: "
                             "device_uuid, SPDK: -u), or each restart there costs a remount here");
}

}  // namespace spark::volumes
