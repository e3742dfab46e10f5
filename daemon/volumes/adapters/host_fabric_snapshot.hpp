// The sysfs entries of one volume's subsystem, at the addresses of its target.
#pragma once

#include "daemon/host_snapshot.hpp"
#include "daemon/volumes/seams/fabric_snapshot.hpp"

namespace spark::volumes {

class HostFabricSnapshot final : public FabricSnapshot {
 public:
  explicit HostFabricSnapshot(HostSnapshot& snapshot) : snapshot_(snapshot) {}

  Result<std::vector<nvmetcp::Controller>> connected(const std::string& subsystem) override;
  Result<> check_paths_secured(const std::string& subsystem, const nvmetcp::ConnectOptions& options) override;
  Result<nvmetcp::Namespace> find_namespace_below(const std::vector<nvmetcp::Controller>& controllers,
                                                  std::uint32_t nsid) override;
  Result<nvmetcp::DeviceOwner> owner_of_device(dev_t device) override;

 private:
  HostSnapshot& snapshot_;
};

}  // namespace spark::volumes
