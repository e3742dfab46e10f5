// The sysfs entries of one volume's subsystem, at the addresses of its target.
#pragma once

#include "daemon/host_snapshot.hpp"
#include "daemon/volumes/seams/fabric_snapshot.hpp"
#include "nvmetcp/security/path_security.hpp"

namespace spark::volumes {

class HostFabricSnapshot final : public FabricSnapshot {
 public:
  explicit HostFabricSnapshot(HostSnapshot& snapshot) : snapshot_(snapshot) {}

  Result<std::vector<nvmetcp::Controller>> connected(const std::string& subsystem) override {
    const auto& all = snapshot_.controllers();
    if (!all) return all;
    const auto& host = snapshot_.host();
    return nvmetcp::controllers_of(*all, subsystem, host ? host->nqn : "");
  }

  Result<> check_paths_secured(const std::string& subsystem,
                               const nvmetcp::ConnectOptions& options) override {
    const auto paths = controllers(subsystem);
    if (!paths) return paths.take_error();
    return nvmetcp::check_paths_secured(SystemRoot{}, *paths, options);
  }

  Result<nvmetcp::Namespace> find_namespace_below(const std::vector<nvmetcp::Controller>& controllers,
                                                  std::uint32_t nsid) override {
    if (controllers.empty())
      return fail(Errc::NotFound,
                  "namespace " + std::to_string(nsid) + " is not there: nothing is connected");
    return snapshot_.find_namespace(controllers, controllers.front().subsystem, nsid);
  }

  Result<nvmetcp::DeviceOwner> owner_of_device(dev_t device) override {
    return snapshot_.owner_of_device(device);
  }

 private:
  HostSnapshot& snapshot_;
};

}  // namespace spark::volumes
