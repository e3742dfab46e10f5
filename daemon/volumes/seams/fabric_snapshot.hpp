// The seam to what sysfs shows of one volume's subsystem. Never blocks.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.hpp"
#include "nvmetcp/sysfs/target_addresses.hpp"
#include "nvmetcp/types.hpp"

namespace spark::volumes {

// Controllers and namespaces, as they are now.
class FabricSnapshot {
 public:
  virtual ~FabricSnapshot() = default;

  // Which addresses are the volume's target's: as the volume has found out.
  virtual nvmetcp::TargetAddresses& addresses() = 0;
  // Those of the subsystem that this host made, at an address of the target; and at another one.
  virtual Result<std::vector<nvmetcp::Controller>> controllers(const std::string& subsystem) = 0;
  virtual std::vector<nvmetcp::Controller> strangers(const std::string& subsystem) = 0;
  // Each path of the subsystem has the keys and the encryption that are asked for; see
  // nvmetcp/security/path_security.hpp.
  virtual Result<> check_paths_secured(const std::string& subsystem,
                                       const nvmetcp::ConnectOptions& options) = 0;
  // Below those of controllers().
  virtual Result<nvmetcp::Namespace> find_namespace(const std::string& subsystem, std::uint32_t nsid) = 0;
  // Below these, which are all of one subsystem.
  virtual Result<nvmetcp::Namespace> find_namespace_below(const std::vector<nvmetcp::Controller>& controllers,
                                                          std::uint32_t nsid) = 0;
  virtual Result<std::string> subsystem_of_device(dev_t device) = 0;
};

}  // namespace spark::volumes
