// The targets of a simulation: their portals, the subsystems that they offer, and the content of the
// namespaces.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "daemon/config/model.hpp"
#include "daemon/mounts/filesystems/published.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"
#include "daemon/sim/reservations.hpp"
#include "daemon/sim/scenario.hpp"
#include "nvmetcp/types.hpp"

namespace spark::sim {

inline constexpr char kNodeName[] = "simulated-host";  // this host's name in multi-mount protection

// A UUID for `name`, the same in every run.
std::string uuid_of(const std::string& name);

// A namespace or an NFS export on its server, and its use by this host.
struct Storage {
  std::string target;  // of the configuration; empty for NFS
  std::string source;  // source of the NFS mount; empty for NVMe/TCP
  std::string subsystem;
  std::uint32_t nsid = 0;
  bool is_offered = true;
  std::string type = "ext4", uuid;  // of its file system; an empty type means none
  Bytes size = kTiB;
  bool has_mmp = false;
  KeptReservations reservations{false, {}, {}};
  std::string writer;         // another host with the file system open for writing; empty means none
  bool is_open_here = false;  // open for writing until it is closed; a lost connection does not close it
  std::uint64_t stamp = 1;    // of the superblock
  std::optional<mounts::Published> published;
  VolumeChange::Latency latency = Duration(1);  // none means no answer

  // This host's state.
  std::string users;  // programs with open files on its mount; empty means none
  Calls connects = Calls::Work, mounts = Calls::Work;
  std::string device;  // "nvme-sim1n1"; empty means that no controller leads to it
  dev_t device_number = 0;
  bool is_shut_down = false;  // the mounted file system is shut down
  std::string mounted_uuid;   // UUID of the mounted file system
};

// The result of a direct read.
mounts::Superblock superblock_of(const Storage& storage);

class Targets {
 public:
  // Adds the configuration's objects. Existing ones keep their state.
  void add(const config::Target& target);
  void add(const config::Volume& volume);
  void apply(const TargetChange& change);
  void apply(const VolumeChange& change);

  // The portal's numeric address.
  static nvmetcp::Portal resolve(const nvmetcp::Portal& portal);
  // Unavailable or TimedOut if nothing answers there.
  Result<> reach(const nvmetcp::Portal& portal) const;
  // The target with this portal; empty means none.
  std::string target_at(const nvmetcp::Portal& portal) const;
  // Whether the change affects this portal.
  bool concerns(const TargetChange& change, const nvmetcp::Portal& portal) const;
  Result<nvmetcp::DiscoveryLog> discover(const nvmetcp::Portal& portal) const;
  bool offers(const std::string& target, const std::string& subsystem) const;

  Storage& storage_of(const std::string& volume) { return storages_[volume]; }
  std::map<std::string, Storage>& storages() { return storages_; }
  const std::map<std::string, Storage>& storages() const { return storages_; }

 private:
  struct Listener {
    nvmetcp::Portal portal;  // as configured: its address may be a name
    std::string target;
    Reach reach = Reach::Up;
  };
  const Listener* find(const nvmetcp::Portal& portal) const;

  std::vector<Listener> listeners_;
  std::map<std::string, Storage> storages_;  // by volume
  std::uint64_t generation_ = 1;             // of every discovery log
};

}  // namespace spark::sim
