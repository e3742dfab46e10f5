// Who this host is to its targets, and whether another host may be the same.
#include "nvmetcp/host_identity.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "base/text.hpp"
#include "doctor/doctor.hpp"
#include "nvmetcp/sysfs.hpp"

namespace spark::doctor {
namespace {

constexpr char kIdentityArea[] = "identity";
constexpr char kCompare[] =
    "compare `cat /etc/nvme/hostnqn /etc/nvme/hostid /etc/machine-id` on every host: no two may be equal";
constexpr char kRenew[] =
    "`sudo spark-stage volumes down`, then `sudo spark-stage host new-identity`, which says what to tell the "
    "targets";

// Firmware of many boards has one of these instead of a number of its own.
constexpr std::array kCommonUuids = {"03000200-0400-0500-0006-000700080009",
                                     "00020003-0004-0005-0006-000700080009",
                                     "ffffffff-ffff-ffff-ffff-ffffffffffff"};

std::string sentences(const std::vector<std::string>& parts) {
  return join(parts, "; ");
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// Written before this machine got its own id at its first boot: it came with the image.
bool came_with_the_image(const SystemRoot& root) {
  std::error_code error;
  const auto identity = std::filesystem::last_write_time(root / "etc/nvme/hostnqn", error);
  if (error) return false;
  const auto machine = std::filesystem::last_write_time(root / "etc/machine-id", error);
  return !error && identity < machine;
}

void check_clone(const Host& host, const nvmetcp::HostIdentity& identity, Report& report) {
  const std::string nqn = lower(identity.nqn);
  for (const char* uuid : kCommonUuids) {
    if (identity.id != uuid && !nqn.ends_with(uuid)) continue;
    report.wrong(kIdentityArea, "/etc/nvme has the UUID " + std::string(uuid) + ", which many boards have",
                 "to a target, hosts with equal identities are one host: reservations and allow lists fail",
                 kRenew);
    return;
  }
  if (came_with_the_image(host.root)) {
    report.note(kIdentityArea,
                "/etc/nvme/hostnqn is older than /etc/machine-id: it may have come with a copied image, "
                "to other hosts as well",
                "to a target, hosts with equal identities are one host: a reservation keeps neither out",
                sentences({kCompare, "if two are", kRenew}));
  }
}

void check_running(const Host& host, const nvmetcp::HostIdentity& identity, Report& report) {
  const auto controllers = nvmetcp::list_controllers(host.root);
  if (!controllers) return;
  for (const auto& controller : *controllers) {
    const bool differs = controller.transport == "tcp" && !controller.host_nqn.empty() &&
                         (controller.host_nqn != identity.nqn || lower(controller.host_id) != identity.id);
    if (!differs) continue;
    report.note(kIdentityArea,
                controller.name + " (" + printable(controller.subsystem) +
                    ") is connected as another host, " + printable(controller.host_nqn),
                "the daemon takes only connections of this host's own identity for its own",
                "with its volume unmounted: sudo nvme disconnect -d " + controller.name);
  }
}

}  // namespace

void check_identity(const Host& host, Report& report) {
  const std::size_t before = report.findings.size();
  const auto identity = nvmetcp::read_host_identity(host.root);
  if (!identity) {
    report.wrong(kIdentityArea, identity.error().what,
                 "without an identity of its own a host connects to nothing", identity.error().hint);
    return;
  }
  if (const auto doubt = nvmetcp::identity_doubt(*identity)) {
    report.note(kIdentityArea, doubt->substr(0, doubt->find(": connections work")),
                "connections work, but tools that derive one from the other take this host for two",
                "with nothing connected: sed 's/.*uuid://' /etc/nvme/hostnqn | sudo tee /etc/nvme/hostid");
  }
  check_clone(host, *identity, report);
  check_running(host, *identity, report);
  report.fine_since(before, "host identity (only the other hosts' files tell that it is unique)");
}

}  // namespace spark::doctor
