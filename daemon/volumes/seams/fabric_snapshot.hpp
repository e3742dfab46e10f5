// The seam to the sysfs entries of one volume's subsystem. Never blocks.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.hpp"
#include "nvmetcp/device/device_owner.hpp"
#include "nvmetcp/sysfs/target_addresses.hpp"
#include "nvmetcp/types.hpp"

namespace spark::volumes {

// The current controllers and namespaces.
class FabricSnapshot {
 public:
  virtual ~FabricSnapshot() = default;

  // The addresses of the volume's target, as far as the volume has determined them.
  nvmetcp::TargetAddresses& addresses() { return addresses_; }
  // The subsystem's controllers that this host created, at any address; at an address of the target; and at
  // any other address.
  virtual Result<std::vector<nvmetcp::Controller>> connected(const std::string& subsystem) = 0;
  Result<std::vector<nvmetcp::Controller>> controllers(const std::string& subsystem) {
    const auto all = connected(subsystem);
    if (!all) return all.take_error();
    return addresses_.ours(*all);
  }
  std::vector<nvmetcp::Controller> strangers(const std::string& subsystem) {
    return addresses_.strangers(connected(subsystem).value_or(std::vector<nvmetcp::Controller>{}));
  }
  // Each path of the subsystem has the configured keys and encryption; see
  // nvmetcp/security/path_security.hpp.
  virtual Result<> check_paths_secured(const std::string& subsystem,
                                       const nvmetcp::ConnectOptions& options) = 0;
  // Among the namespaces of these controllers, which all belong to one subsystem.
  virtual Result<nvmetcp::Namespace> find_namespace_below(const std::vector<nvmetcp::Controller>& controllers,
                                                          std::uint32_t nsid) = 0;
  virtual Result<nvmetcp::DeviceOwner> owner_of_device(dev_t device) = 0;

 private:
  nvmetcp::TargetAddresses addresses_;
};

}  // namespace spark::volumes
