// The targets of a simulation: what listens where, what each offers, and what is on it.
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

inline constexpr char kNodeName[] = "simulated-host";  // of this host, to multi-mount protection

// A UUID that belongs to `name`, the same in every run.
std::string uuid_of(const std::string& name);

// A namespace, or an NFS export, as its server has it, and this host's use of it.
struct Storage {
  std::string target;  // of the configuration; empty for NFS
  std::string source;  // of an NFS mount; empty for NVMe/TCP
  std::string subsystem;
  std::uint32_t nsid = 0;
  bool is_offered = true;
  std::string type = "ext4", uuid;  // of its file system; an empty type means none
  Bytes size = kTiB;
  bool has_mmp = false;
  KeptReservations reservations{false, {}, {}};
  std::string writer;         // another host that has it open for writing; empty means none
  bool is_open_here = false;  // for writing, until it is closed: a loss does not close it
  std::uint64_t stamp = 1;    // of the superblock
  std::optional<mounts::Published> published;
  VolumeChange::Latency latency = Duration(1);  // none: no answer

  // Of this host.
  std::string users;  // programs that have files of its mount open; empty means none
  Calls connects = Calls::Work, mounts = Calls::Work;
  std::string device;  // "nvme-sim1n1"; empty: no controller leads to it
  dev_t device_number = 0;
  bool is_shut_down = false;  // what is mounted
  std::string mounted_uuid;   // the same
};

// As a direct read of it has it.
mounts::Superblock superblock_of(const Storage& storage);

class Targets {
 public:
  // As the configuration has them. What is known already keeps what has happened to it.
  void add(const config::Target& target);
  void add(const config::Volume& volume);
  void apply(const TargetChange& change);
  void apply(const VolumeChange& change);

  // The address that a portal's name leads to.
  static nvmetcp::Portal resolve(const nvmetcp::Portal& portal);
  // Unavailable or TimedOut: nothing answers there.
  Result<> reach(const nvmetcp::Portal& portal) const;
  // The target that has this portal; empty: none.
  std::string target_at(const nvmetcp::Portal& portal) const;
  // A change of the target is about this portal.
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
