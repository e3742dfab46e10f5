// What sysfs shows of one volume's subsystem, at the addresses of its target.
#pragma once

#include "daemon/sight.hpp"
#include "daemon/volumes/seams/sight.hpp"

namespace spark::volumes {

class SightOfFabric final : public FabricSight {
 public:
  explicit SightOfFabric(Sight& sight) : sight_(sight) {}

  nvmetcp::TargetAddresses& addresses() override { return addresses_; }
  Result<std::vector<nvmetcp::Controller>> controllers(const std::string& subsystem) override;
  std::vector<nvmetcp::Controller> strangers(const std::string& subsystem) override;
  Result<> check_paths_secured(const std::string& subsystem, const nvmetcp::ConnectOptions& options) override;
  Result<nvmetcp::Namespace> find_namespace(const std::string& subsystem, std::uint32_t nsid) override;
  Result<nvmetcp::Namespace> find_namespace_below(const std::vector<nvmetcp::Controller>& controllers,
                                                  std::uint32_t nsid) override;
  Result<std::string> subsystem_of_device(dev_t device) override;

 private:
  Sight& sight_;
  nvmetcp::TargetAddresses addresses_;
};

}  // namespace spark::volumes
