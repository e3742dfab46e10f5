#include "daemon/volumes/adapters/host_fabric_snapshot.hpp"

#include "nvmetcp/security/path_security.hpp"

namespace spark::volumes {

Result<std::vector<nvmetcp::Controller>> HostFabricSnapshot::connected(const std::string& subsystem) {
  const auto& all = snapshot_.controllers();
  if (!all) return all;
  const auto& host = snapshot_.host();
  return nvmetcp::controllers_of(*all, subsystem, host ? host->nqn : "");
}

Result<> HostFabricSnapshot::check_paths_secured(const std::string& subsystem,
                                                 const nvmetcp::ConnectOptions& options) {
  const auto paths = controllers(subsystem);
  if (!paths) return paths.take_error();
  return nvmetcp::check_paths_secured(SystemRoot{}, *paths, options);
}

Result<nvmetcp::Namespace> HostFabricSnapshot::find_namespace_below(
    const std::vector<nvmetcp::Controller>& controllers, std::uint32_t nsid) {
  if (controllers.empty())
    return fail(Errc::NotFound, "namespace " + std::to_string(nsid) + " is not there: nothing is connected");
  return snapshot_.find_namespace(controllers, controllers.front().subsystem, nsid);
}

Result<nvmetcp::DeviceOwner> HostFabricSnapshot::owner_of_device(dev_t device) {
  return snapshot_.owner_of_device(device);
}

}  // namespace spark::volumes
