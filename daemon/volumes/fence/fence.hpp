// What keeps other writers out of an exclusive volume: an NVMe reservation where the namespace offers it, and
// multi-mount protection where the file system has it. Armed before the mount, watched while it lasts.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "daemon/volumes/context.hpp"
#include "daemon/volumes/outages.hpp"

namespace spark::volumes {

class Fence {
 public:
  Fence(VolumeContext& volume, Outages& outages) : volume_(volume), outages_(outages) {}

  bool is_wanted() const;
  // Multi-mount protection is all that keeps other writers out.
  bool is_alone() const;

  // Before the mount. Refused: another host holds it, or there is no fence of the kind that is asked for.
  // `takes`: an operator asked to take the reservation over from the host that holds it.
  asio::awaitable<Result<>> arm(mounts::Superblock superblock, bool takes);
  // After a mount that failed: another host may try, if none held it before.
  asio::awaitable<void> disarm();
  // Mounted already when the daemon started. Another host may have taken over, and given back, meanwhile.
  asio::awaitable<Result<>> adopt(mounts::Superblock superblock);
  // With the reservation held nobody else writes; then what is mounted here has to be what is on the disk.
  asio::awaitable<Result<>> check_still_ours();

  // Why this host may not write any more, as a probe shows it; empty: it may.
  std::string why_lost(const ProbeAnswer& answer);
  // The same of a file system that shut itself down, over a link that is live: because the target refuses its
  // writes?
  asio::awaitable<std::string> who_took_over();
  // The mount's file system is shut down at once, unflushed: what it had not written would only damage what
  // another host writes now.
  asio::awaitable<void> lose(std::string reason);
  // Whom the last take took it from; empty: nobody.
  const std::string& taken_from() const { return taken_from_; }
  void forget_take() { taken_from_.clear(); }

 private:
  asio::awaitable<Result<nvmetcp::ReservationState>> ask(ReservationAct act);
  std::string name_holder(const nvmetcp::ReservationState& holding,
                          const mounts::Superblock& superblock) const;
  Error held_elsewhere(const nvmetcp::ReservationState& holding, const mounts::Superblock& superblock);
  Result<> check_offered(const nvmetcp::ReservationState& holding,
                         const mounts::Superblock& superblock) const;
  bool is_forgotten_hold(const nvmetcp::ReservationState& holding) const;
  Result<> check_not_held(const nvmetcp::ReservationState& holding, const mounts::Superblock& superblock);
  asio::awaitable<void> wait_for_late_writes(mounts::Superblock superblock, bool is_same_id);

  VolumeContext& volume_;
  Outages& outages_;
  bool is_fresh_hold_ = false;  // the reservation was free before this attempt to mount
  std::string taken_from_;
};

}  // namespace spark::volumes
