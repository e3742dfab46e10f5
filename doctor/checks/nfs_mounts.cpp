// NFS mounts that one connection carries.
#include <algorithm>

#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"
#include "doctor/checks/host.hpp"

namespace spark::doctor {

void check_nfs_mounts(const Host& host, Report& report) {
  const auto mounts = mounts::read_mount_table(host.root);
  if (!mounts || host.cpus < 2) return;
  const std::size_t before = report.findings.size();
  std::size_t seen = 0;
  for (const mounts::Mount& mount : *mounts) {
    if (!mount.type.starts_with("nfs") || mount.type == "nfsd") continue;
    ++seen;
    // The kernel shows nconnect where it is more than one.
    if (mounts::has_option(mount.super_options, "nconnect")) continue;
    if (mount.super_options.find("proto=rdma") != std::string::npos) continue;
    report.note(
        "nfs", printable(mount.target.string()) + " has a single connection to its server",
        "one CPU receives all of it, and `spark-stage bench` compares it with NVMe/TCP's several queues",
        "unmount all of that server and mount with nconnect=" + std::to_string(std::min(8U, host.cpus)));
  }
  if (seen > 0) report.fine_since(before, "NFS mounts (connections)");
}

}  // namespace spark::doctor
