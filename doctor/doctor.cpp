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

}  // namespace spark::doctor
