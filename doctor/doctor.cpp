#include "doctor/doctor.hpp"

#include "doctor/network/network.hpp"

namespace spark::doctor {

Report examine(const Host& host) {
  Report report;
  for (const auto check : {check_set_up, check_kernel, check_keys, check_identity, check_network,
                           check_connections, check_nfs_mounts, check_volumes, check_manual_setup,
                           check_managers, check_fleet, check_cache_drive, check_memory, check_clock}) {
    check(host, report);
  }
  return report;
}

Report examine_network(const Host& host, const LinkMeter& meter) {
  Report report;
  check_network(host, report);
  if (host.is_root)
    test_reads(host, meter, report);
  else
    report.unknown.push_back("the rate of reads from the targets (needs root)");
  if (host.settings().fleet.listen.empty()) return report;
  const auto tested = test_links(host, meter, {}, report);
  if (!tested) report.unknown.push_back("the links to peers (" + tested.error().message() + ")");
  return report;
}

}  // namespace spark::doctor
