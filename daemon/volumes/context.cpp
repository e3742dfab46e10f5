#include "daemon/volumes/context.hpp"

#include <utility>

#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/token.hpp"

namespace spark::volumes {

VolumeContext::VolumeContext(asio::any_io_executor its_executor, config::Volume its_settings,
                             std::optional<config::Target> its_target, Seams its_seams,
                             const Clock& its_clock, Timings its_timings,
                             std::function<void(State before)> on_change)
    : executor(its_executor),
      settings(std::move(its_settings)),
      target(std::move(its_target)),
      seams(std::move(its_seams)),
      clock(its_clock),
      timings(its_timings),
      backoff(its_timings.first_retry, its_timings.longest_retry, its_clock),
      on_change_(std::move(on_change)),
      sleeping_(its_executor) {
  status.since = clock.wall();
  status.reason = "starting";
  const auto pinned = seams.store.pinned_identity().value_or(FilesystemIdentity{});
  status.is_to_write = get_string(seams.store.saved(Record::ToWrite), "uuid") == pinned.uuid;
}

Standing VolumeContext::look_at_standing() {
  Standing standing = look_at_place(seams, settings);
  const bool is_same = standing.own && checked && *standing.own == checked->mount;
  if (standing.place != Place::Unknown && !is_same) forget_mount();
  // Made writable by a worker that was given up, or by a person: it is checked again, and fenced, before it
  // counts as a writer.
  if (standing.place == Place::Ours && is_published(*this) && checked && !checked->is_changing_writing &&
      !mounts::is_read_only(*standing.top))
    forget_mount();
  if (standing.place == Place::Ours && is_broken(*standing.top)) standing.place = Place::Broken;
  return standing;
}

void VolumeContext::forget_mount() {
  checked.reset();
  for (const Warning of_mount : {Warning::MountOptions, Warning::NamespaceId, Warning::FilesystemId,
                                 Warning::CutShort, Warning::OnlyMmp, Warning::Unannounced})
    status.warn(of_mount, "");
}

// Found by the probe, or reported by the kernel after an error; not every kernel reports it, hence the probe.
bool VolumeContext::is_broken(const mounts::Mount& top) const {
  if (checked && checked->is_broken) return true;
  if (settings.nfs) return false;
  // While a worker remounts it, its file system changes before its mount does.
  const bool is_changing = checked && checked->is_changing_writing;
  // The kernel made it read-only after an error: the mount itself is not.
  const bool is_after_error = settings.access == config::Access::Exclusive && !is_changing &&
                              mounts::has_option(top.super_options, "ro") &&
                              !mounts::has_option(top.options, "ro");
  const bool should_be_writable = checked && checked->is_writer && !is_changing;
  return mounts::has_option(top.super_options, "shutdown") ||
         mounts::has_option(top.super_options, "emergency_ro") || is_after_error ||
         (should_be_writable && mounts::is_read_only(top));
}

bool VolumeContext::writes_superblock(const Standing& standing) const {
  return standing.place == Place::Broken && standing.top->type == "ext4" &&
         !mounts::is_read_only(*standing.top);
}

void VolumeContext::set_state(State state, std::string reason) {
  const State before = status.state;
  const bool changed = state != before || reason != status.reason;
  if (state != before) status.since = clock.wall();
  status.state = state;
  status.reason = std::move(reason);
  if (changed && on_change_) on_change_(before);
}

State VolumeContext::working_state(State first_time) {
  if (first_time != State::Mounting && look_at_mount() == Place::Dead) return State::Lost;
  return attempts.was_ready ? State::Recovering : first_time;
}

asio::awaitable<void> VolumeContext::sleep(Duration duration) {
  if (duration == Duration::max()) {
    sleeping_.expires_at(SteadyTime::max());
  } else {
    sleeping_.expires_after(duration);
  }
  co_await sleeping_.wait();
}

Duration VolumeContext::until_next(Duration period) const {
  const auto now = clock.steady().time_since_epoch();
  return std::chrono::ceil<Duration>(period - now % period);
}

std::shared_ptr<std::optional<Result<>>> start_flush(VolumeContext& volume, OwnMount mount,
                                                     std::function<void()> on_end) {
  const auto outcome = std::make_shared<std::optional<Result<>>>();
  auto work = [](VolumeContext& its, std::shared_ptr<void> /*alive*/, OwnMount flushed,
                 std::shared_ptr<std::optional<Result<>>> into,
                 std::function<void()> end) -> asio::awaitable<void> {
    *into = co_await its.seams.device.flush(std::move(flushed));
    end();
  };
  launch(volume.executor, "flush of volume " + volume.settings.name,
         work(volume, volume.keep_alive(), std::move(mount), outcome, std::move(on_end)));
  return outcome;
}

bool is_published(const VolumeContext& volume) {
  if (volume.settings.access != config::Access::Exclusive || !volume.settings.nvme) return false;
  if (volume.checked) return !volume.checked->is_writer;
  const auto pinned = volume.seams.store.pinned_identity().value_or(FilesystemIdentity{});
  const std::string& configured = volume.settings.nvme->filesystem_uuid;
  return pinned.is_published && (configured.empty() || configured == pinned.uuid);
}

bool is_reader(const VolumeContext& volume) {
  return volume.settings.nvme && (volume.settings.access == config::Access::ReadOnly || is_published(volume));
}

Error asked_down(const VolumeContext& volume) {
  return {Errc::Cancelled, "volume " + volume.settings.name + " was asked down meanwhile", ""};
}

Result<> check_not_changing(const VolumeContext& volume) {
  if (!volume.checked || !volume.checked->is_changing_writing) return {};
  return fail(Errc::Unavailable,
              "volume " + volume.settings.name + " is being published, or made writable again", "try again");
}

std::string namespace_name(const VolumeContext& volume) {
  return "namespace " + std::to_string(volume.settings.nvme->nsid) + " of " +
         printable(volume.settings.nvme->subsystem);
}

std::string damaged(const VolumeContext& volume, const std::string& damage) {
  const bool is_xfs = volume.status.filesystem_type == "xfs";
  return printable(damage) + ": it has to be repaired by `" + (is_xfs ? "xfs_repair " : "e2fsck -f ") +
         volume.status.device + "` on one host, while no host has it mounted";
}

}  // namespace spark::volumes
