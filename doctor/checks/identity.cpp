// This host's NVMe identity, and whether another host may share it.
#include "nvmetcp/host_identity.hpp"

#include "base/text.hpp"
#include "doctor/checks/copied_identity.hpp"
#include "doctor/checks/host.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"

namespace spark::doctor {
namespace {

void check_running(const Host& host, const nvmetcp::HostIdentity& identity, Report& report) {
  const auto controllers = nvmetcp::list_controllers(host.root);
  if (!controllers) return;
  for (const auto& controller : *controllers) {
    const bool differs = controller.transport == "tcp" && !controller.host_nqn.empty() &&
                         (controller.host_nqn != identity.nqn || lower(controller.host_id) != identity.id);
    if (!differs) continue;
    const bool other_nqn = controller.host_nqn != identity.nqn;
    report.note(
        kIdentityArea,
        controller.name + " (" + printable(controller.subsystem) + ") is connected as another host, " +
            (other_nqn ? printable(controller.host_nqn)
                       : "with this host's NQN and host ID " + printable(controller.host_id)),
        other_nqn ? "the daemon takes only connections of this host's own identity for its own"
                  : "newer kernels refuse another connection while the host NQN and host ID do not match",
        "with its volume unmounted: sudo nvme disconnect -d " + controller.name);
  }
}

}  // namespace

void check_identity(const Host& host, Report& report) {
  const std::size_t before = report.findings.size();
  const auto identity = nvmetcp::read_host_identity(host.root);
  if (!identity) {
    report.wrong(kIdentityArea, identity.error().what,
                 "without an identity this host can't connect to any target", identity.error().hint);
    return;
  }
  if (const auto doubt = nvmetcp::identity_doubt(*identity)) {
    report.note(kIdentityArea,
                doubt->substr(0, doubt->find(": connections work")) +
                    ": one of the two files may have come from another host",
                "connections work, but tools that derive one from the other take this host for two, and a "
                "reservation does not tell it from the host that the file came from",
                "with nothing connected: sed 's/.*uuid://' /etc/nvme/hostnqn | sudo tee /etc/nvme/hostid");
  }
  check_copies(host, *identity, report);
  check_running(host, *identity, report);
  report.fine_since(before, "host identity (only the other hosts' files tell that it is unique)");
}

}  // namespace spark::doctor
