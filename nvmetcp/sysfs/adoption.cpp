#include "nvmetcp/sysfs/adoption.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/sysfs/registry.hpp"

namespace spark::nvmetcp {
namespace {

bool is_at_one_of(const Controller& controller, const std::vector<Portal>& numeric) {
  return std::ranges::any_of(numeric, [&](const Portal& portal) {
    return controller.portal.port == portal.port && same_address(controller.portal.address, portal.address);
  });
}

// Of this host, on the way that is asked for.
bool is_way(const Controller& controller, const std::vector<Portal>& numeric, const HostIdentity& host,
            const std::string& interface) {
  return controller.transport == "tcp" && controller.host_nqn == host.nqn &&
         (interface.empty() || controller.interface == interface) && is_at_one_of(controller, numeric);
}

}  // namespace

Result<std::optional<Controller>> find_adoptable(const std::vector<Controller>& all,
                                                 const std::string& subsystem,
                                                 const std::vector<Portal>& numeric, const HostIdentity& host,
                                                 const std::string& interface) {
  std::optional<Controller> unusable;
  for (const Controller& controller : all) {
    if (controller.subsystem != subsystem || !is_way(controller, numeric, host, interface)) continue;
    if (controller.is_live()) return controller;
    unusable = controller;
  }
  if (!unusable) return std::nullopt;
  return fail(Errc::Unavailable,
              "connecting subsystem " + printable(subsystem) + " at " + to_string(unusable->portal) + ": " +
                  unusable->name + " already stands for it and is " + printable(unusable->state),
              unusable->is_going() ? "once it is gone, another attempt can connect"
                                   : "the kernel is reconnecting it");
}

std::optional<Controller> find_own_discovery(const std::vector<Controller>& all,
                                             const std::vector<Portal>& numeric, const HostIdentity& host,
                                             const std::string& interface) {
  const auto found = std::ranges::find_if(all, [&](const Controller& controller) {
    return controller.is_discovery && controller.owner == kOwner && !controller.is_going() &&
           is_way(controller, numeric, host, interface);
  });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

Result<> check_host_conflict(const std::vector<Controller>& all, const HostIdentity& host) {
  for (const Controller& controller : all) {
    if (controller.host_nqn.empty() || controller.host_id.empty()) continue;
    const bool same_nqn = controller.host_nqn == host.nqn;
    const bool same_id = controller.host_id == host.id;
    if (same_nqn == same_id) continue;
    return fail(Errc::Invalid,
                controller.name + " is connected with host NQN " + printable(controller.host_nqn) +
                    " and host id " + printable(controller.host_id) + ", /etc/nvme gives " +
                    printable(host.nqn) + " and " + host.id + ": the kernel takes one host id for a host NQN",
                "disconnect " + controller.name + ", or put its values into /etc/nvme/hostnqn and hostid");
  }
  return {};
}

}  // namespace spark::nvmetcp
