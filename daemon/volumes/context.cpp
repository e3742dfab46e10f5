#include "daemon/volumes/context.hpp"

#include <utility>

#include "base/text.hpp"
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
}

Place VolumeContext::look_at_mount() {
  const Standing standing = look_at_place(seams, settings);
  return standing.place == Place::Ours && is_broken(*standing.top) ? Place::Broken : standing.place;
}

// Found by the probe, or reported by the kernel after an error; not every kernel reports it, hence the probe.
bool VolumeContext::is_broken(const mounts::Mount& top) {
  if (mount.is_broken || settings.nfs) return mount.is_broken;
  return mounts::has_option(top.super_options, "shutdown") ||
         mounts::has_option(top.super_options, "emergency_ro") ||
         (settings.access == config::Access::Exclusive && !is_published(*this) &&
          !mount.is_changing_writing && mounts::is_read_only(top));
}

Result<std::optional<mounts::Mount>> VolumeContext::top_mount() {
  const auto& table = seams.mounts.mount_table();
  if (!table) return table.take_error();
  const mounts::Mount* top = mounts::mounted_at(*table, settings.mount);
  return top == nullptr ? std::nullopt : std::optional<mounts::Mount>(*top);
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

bool is_published(const VolumeContext& volume) {
  return volume.settings.access == config::Access::Exclusive &&
         volume.seams.store.pinned_identity().value_or(FilesystemIdentity{}).is_published;
}

bool is_reader(const VolumeContext& volume) {
  return volume.settings.nvme && (volume.settings.access == config::Access::ReadOnly || is_published(volume));
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
