// A simulated host, in memory: its controllers, disks and mounts, and the targets behind them. The seams of
// volumes and of discovery read and change it, on the daemon's thread.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/kernel/mount_table.hpp"
#include "base/result.hpp"
#include "daemon/mounts/mounter.hpp"
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
  // `heard` is called for each event that udev would report.
  void on_uevent(std::function<void(const Uevent&)> heard) { heard_ = std::move(heard); }
  Targets& targets() { return targets_; }

  // A connection that is down still occupies its portal: like the kernel, this refuses a second one.
  Result<nvmetcp::Connection> connect(const std::string& subsystem, const nvmetcp::Portal& portal,
                                      const std::string& interface = {});
  Change disconnect(const std::string& controller);
  const std::vector<nvmetcp::Controller>& controllers() const { return controllers_; }
  Result<nvmetcp::Namespace> find_namespace(const std::vector<nvmetcp::Controller>& through,
                                            std::uint32_t nsid) const;
  Result<std::string> subsystem_of(dev_t device) const;
  // It has a live path; always true for NFS.
  bool is_live(const Storage& storage) const;

  const std::vector<mounts::Mount>& mounts() const { return mounts_; }
  // The storage of "/dev/nvme-sim1n1" or "HOST:/PATH"; null if it does not exist now.
  Storage* behind(const std::string& source);
  // The storage mounted at `target`; null if nothing is mounted, or its device is gone.
  Storage* mounted_at(const std::filesystem::path& target);
  void mount(const mounts::MountRequest& request);
  // Closes the file system that this host had open for writing.
  void unmount(const std::filesystem::path& target);
  void set_read_only(const std::filesystem::path& target, bool read_only);

 private:
  void apply_to_target(const TargetChange& change);
  void apply_to_volume(const VolumeChange& change);
  bool leads_to(const nvmetcp::Controller& controller, const Storage& storage) const;
  // Disks appear with their first controller, and disappear with the last.
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
