// Excludes other writers from an exclusive volume: an NVMe reservation if the namespace supports it, and
// multi-mount protection if the file system has it. Armed before the mount, watched while it lasts.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "daemon/volumes/checked_mount.hpp"
#include "daemon/volumes/context.hpp"
#include "daemon/volumes/outages.hpp"

namespace spark::volumes {

class Fence {
 public:
  Fence(VolumeContext& volume, Outages& outages);

  // Before the mount: fences it. Refused if another host holds the volume, or the configured kind of
  // fence is not available. A reader needs no fence; it holds the reservation of a volume that it has
  // published, if that is free.
  asio::awaitable<Result<>> arm(mounts::Superblock superblock, Role role);
  // Why a mount for writing failed: another host's reservation also stops a volume that is fenced by
  // multi-mount protection.
  asio::awaitable<Error> explain(Error error, mounts::Superblock superblock);
  // After a failed mount: releases the reservation for other hosts, if it was free before.
  asio::awaitable<void> disarm();
  // After a mount that has succeeded.
  void keep() { is_fresh_hold_ = false; }
  // For a writable mount that existed when the daemon started: the same mount, fenced. Another host may have
  // taken over, and released it, meanwhile.
  asio::awaitable<Result<CheckedMount>> adopt(CheckedMount found, mounts::Superblock superblock);
  // While this host holds the reservation no other host writes; then checks that the mounted file system
  // equals the one on the disk.
  asio::awaitable<Result<>> check_still_ours(CheckedMountPtr mount);

  // Why this host may no longer write, judged from a probe; empty means that it may. Makes a reservation
  // again that the target forgot, also for a reader that has published.
  asio::awaitable<std::string> why_lost(CheckedMountPtr mount, ProbeAnswer answer);
  // The same where no probe goes: for a mount below another one, or one that shut itself down. Over a live
  // link only. No answer is an error, and tells nothing.
  asio::awaitable<Result<std::string>> who_took_over(CheckedMountPtr mount);
  // The reservation of the namespace, whatever the fence is.
  asio::awaitable<Result<nvmetcp::ReservationState>> ask_namespace(ReservationAct act);
  // At its end, and with a remount for writing, which counts like another host's mount, and writes this
  // host's present name. The record ends before: its daemon may end meanwhile.
  asio::awaitable<void> forget_held();
  asio::awaitable<void> forget_record();
  // Shuts the mounted file system down immediately, without flushing: its unwritten data would only damage
  // the other host's writes. Nothing, if another mount is there by now: a person may have made it during the
  // probe.
  asio::awaitable<void> lose(CheckedMountPtr mount, std::string reason);
  // Its last step, again if that failed.
  asio::awaitable<Result<>> stop(CheckedMountPtr mount);
  // The host from which the last takeover took it; empty means none.
  const std::string& taken_from() const { return taken_from_; }
  void forget_take() { taken_from_.clear(); }

 private:
  asio::awaitable<Result<nvmetcp::ReservationState>> ask(
      ReservationAct act);  // none: it wants no reservation
  std::string name_holder(const nvmetcp::ReservationState& holding,
                          const mounts::Superblock& superblock) const;
  Error held_elsewhere(const nvmetcp::ReservationState& holding, const mounts::Superblock& superblock);
  bool was_mounted_elsewhere(const CheckedMount& mount, const mounts::Superblock& now) const;
  std::string why_taken(CheckedMount& mount, const ProbeAnswer& answer);
  asio::awaitable<void> note_held(CheckedMountPtr mount, ProbeAnswer answer);
  bool is_forgotten_hold(const nvmetcp::ReservationState& holding, const mounts::Superblock& superblock);
  Result<> check_not_held(const nvmetcp::ReservationState& holding, const mounts::Superblock& superblock);
  asio::awaitable<Result<>> expect_late_writes(bool is_same_id);
  asio::awaitable<Result<>> wait_for_late_writes(mounts::Superblock before);

  VolumeContext& volume_;
  Outages& outages_;
  bool is_fresh_hold_ =
      false;  // the reservation was free before the attempts to mount it since the last mount
  std::string taken_from_;
  SteadyTime late_until_{};  // after a takeover: writes of the other host may still come
};

}  // namespace spark::volumes
