// A simulated host, in memory: its controllers, disks and mounts, and the targets behind them. The seams of
// volumes and of discovery look at it and change it, on the daemon's thread.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "daemon/mounts/mounter.hpp"
#include "daemon/mounts/table.hpp"
#include "daemon/sim/targets.hpp"
#include "daemon/uevents.hpp"
#include "nvmetcp/connect/gateway.hpp"

namespace spark::sim {

inline constexpr char kHostId[] = "5b0c4d2e-0000-4000-8000-000000000001";
inline constexpr char kHostNqn[] = "nqn.2014-08.org.nvmexpress:uuid:5b0c4d2e-0000-4000-8000-000000000001";

class World {
 public:
  void add(const config::Target& target) { targets_.add(target); }
  void add(const config::Volume& volume);
  void apply(const WorldChange& change);
  // Called for what udev would tell.
  void on_uevent(std::function<void(const Uevent&)> heard) { heard_ = std::move(heard); }
  Targets& targets() { return targets_; }

  // A connection that is down stands for its portal: as the kernel does, another one is refused.
  Result<nvmetcp::Connection> connect(const std::string& subsystem, const nvmetcp::Portal& portal);
  Change disconnect(const std::string& controller);
  const std::vector<nvmetcp::Controller>& controllers() const { return controllers_; }
  Result<nvmetcp::Namespace> find_namespace(const std::vector<nvmetcp::Controller>& through,
                                            std::uint32_t nsid) const;
  Result<std::string> subsystem_of(dev_t device) const;
  // A path to it is live; for NFS, always.
  bool is_live(const Storage& storage) const;

  const std::vector<mounts::Mount>& mounts() const { return mounts_; }
  // Of "/dev/nvme-sim1n1" or "HOST:/PATH"; null: there is no such thing now.
  Storage* behind(const std::string& source);
  // Of what is mounted at `target`; null: nothing is, or its device is gone.
  Storage* mounted_at(const std::filesystem::path& target);
  void mount(const mounts::MountRequest& request);
  // Closes what this host had open for writing.
  void unmount(const std::filesystem::path& target);
  void set_read_only(const std::filesystem::path& target, bool read_only);

 private:
  void apply_to_target(const TargetChange& change);
  void apply_to_volume(const VolumeChange& change);
  bool leads_to(const nvmetcp::Controller& controller, const Storage& storage) const;
  // Disks appear with the first controller that leads to them, and vanish with the last.
  void refresh_disks();
  void tell(const std::vector<nvmetcp::Controller>& controllers, const std::string& target);

  Targets targets_;
  std::vector<nvmetcp::Controller> controllers_;
  std::vector<mounts::Mount> mounts_;
  std::function<void(const Uevent&)> heard_ = [](const Uevent&) {};
  unsigned next_controller_ = 1, next_disk_ = 1;
  int next_mount_ = 1;
};

}  // namespace spark::sim
