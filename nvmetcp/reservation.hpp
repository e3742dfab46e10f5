// Who may write a namespace: NVMe reservations, as a target reports them. A write-exclusive reservation lets
// every host read and its holder alone write; the target refuses the others' writes, those of a host that was
// frozen and wakes up included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

struct Registrant {
  std::string host_id;    // a UUID, lower case
  std::uint64_t key = 0;  // what it registered with
  bool holds = false;     // the reservation
};

struct ReservationReport {
  std::uint32_t generation = 0;         // counts every change; 0 after a restart of a target that forgets
  unsigned type = 0;                    // 0: nobody holds it; 1: write exclusive
  std::vector<Registrant> registrants;  // one for each controller of a host on some targets
};

// The extended data structure of a Reservation Report command. Untrusted: Invalid if it contradicts itself.
Result<ReservationReport> parse_reservation_report(std::span<const std::byte> data);

// What this host registers with: the same at every start, and another on a machine that was given a copy of
// this one's host ID, as long as NQN or machine ID differ. Never 0.
std::uint64_t reservation_key(const HostIdentity& host, const std::string& machine_id);

// /etc/machine-id; empty where there is none.
std::string read_machine_id(const SystemRoot& root);

}  // namespace spark::nvmetcp
