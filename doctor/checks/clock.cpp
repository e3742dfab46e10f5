#include "doctor/checks/host.hpp"

namespace spark::doctor {

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
