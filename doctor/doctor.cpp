#include "doctor/doctor.hpp"

namespace spark::doctor {

const config::Config& Host::settings() const {
  static const config::Config none;
  return config ? *config : none;
}

Report examine(const Host& host) {
  Report report;
  for (const auto check :
       {check_set_up, check_kernel, check_keys, check_identity, check_network, check_connections,
        check_volumes, check_by_hand, check_managers, check_cache_drive, check_memory, check_clock}) {
    check(host, report);
  }
  return report;
}

void check_clock(const Host& host, Report& report) {
  const std::size_t before = report.findings.size();
  if (!host.clock_is_synchronised) {
    report.note("clock", "the clock is not synchronised",
                "the times of leases, outages and logs can't be compared with those of other hosts",
                "sudo timedatectl set-ntp true");
  }
  report.fine_since(before, "clock");
}

}  // namespace spark::doctor
