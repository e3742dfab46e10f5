// Names the host that holds a volume, with the next step.
#include "base/text.hpp"
#include "daemon/volumes/fence/fence.hpp"

namespace spark::volumes {

using nvmetcp::Hold;
using nvmetcp::ReservationState;

// "host 'spark1' with host ID 1111…": as far as known.
std::string Fence::name_holder(const ReservationState& holding, const mounts::Superblock& superblock) const {
  const std::string node = superblock.mmp_open &&
                                   superblock.mmp_node != volume_.seams.neighbours.node_name() &&
                                   !superblock.mmp_node.empty()
                               ? "host '" + printable(superblock.mmp_node) + "'"
                               : "";
  if (holding.hold != Hold::Theirs) return node.empty() ? "another host" : node;
  if (holding.cloned_id) return "another machine with this host's own host ID " + holding.holder;
  return (node.empty() ? "the host" : node) + " with host ID " + holding.holder;
}

Error Fence::held_elsewhere(const ReservationState& holding, const mounts::Superblock& superblock) {
  volume_.status.fence.held_by = name_holder(holding, superblock);
  const std::string sudo = "`sudo spark-stage volumes ", name = volume_.settings.name;
  const bool is_mounted = volume_.checked && volume_.look_at_mount() == Place::Ours;  // published here
  const std::string take =
      (is_mounted ? sudo + "down " + name + "`, then " : "") + sudo + "take " + name + "` takes it over";
  if (holding.cloned_id) {
    return {Errc::Refused,
            volume_.status.fence.held_by + " holds the reservation of " + namespace_name(volume_),
            "one of the two is a copy of the other: on the copy `sudo spark-stage volumes down`, then `sudo "
            "spark-stage host new-identity`; if it was this host, before its machine ID or board changed, " +
                take};
  }
  if (holding.hold == Hold::Theirs) {
    return {Errc::Refused,
            volume_.status.fence.held_by + " holds the reservation of " + namespace_name(volume_),
            "`spark-stage volumes down` there gives it back; if that host is gone for good, " + take};
  }
  const std::string ours = holding.hold == Hold::Ours
                               ? ", although this host ID holds the reservation: is it a copy of another's? "
                                 "(`sudo spark-stage host new-identity` makes a fresh one)"
                               : "";
  return {Errc::Refused,
          namespace_name(volume_) + ": " + volume_.status.fence.held_by +
              " has it open for writing, or died while it had" + ours,
          "unmount it there; if that host is gone for good, " + take};
}

}  // namespace spark::volumes
