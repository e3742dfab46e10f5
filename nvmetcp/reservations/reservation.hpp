// NVMe reservations, as a target reports them: the hosts that may write a namespace. A write-exclusive
// reservation lets every host read and its holder alone write; the target refuses the others' writes, those
// of a host that was frozen and wakes up included.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/described.hpp"
#include "base/file.hpp"
#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

struct Registrant {
  std::string host_id;    // a UUID, lower case
  std::uint64_t key = 0;  // its registered key
  bool holds = false;     // the reservation
};
SPARK_MESSAGE(Registrant, (host_id, key, holds));

struct ReservationReport {
  std::uint32_t generation = 0;         // counts every change; 0 after a restart of a target that forgets
  unsigned type = 0;                    // 0: not held; 1: write exclusive
  std::vector<Registrant> registrants;  // one for each controller of a host on some targets
};
SPARK_MESSAGE(ReservationReport, (generation, type, registrants));

// The extended data structure of a Reservation Report command. Untrusted: Invalid if it contradicts itself.
Result<ReservationReport> parse_reservation_report(std::span<const std::byte> data);

// The reservation capabilities in an Identify Namespace structure. Unavailable if the namespace is inactive:
// then all is zero, as of one that is disabled for a moment.
Result<std::uint8_t> parse_reservation_capabilities(std::span<const std::byte> data);

// Of boards that share one firmware: a number that many of them have instead of one of their own.
inline constexpr std::array kCommonBoardUuids = {"03000200-0400-0500-0006-000700080009",
                                                 "00020003-0004-0005-0006-000700080009",
                                                 "ffffffff-ffff-ffff-ffff-ffffffffffff"};

// Distinguishes this machine from a copy of its disk.
struct Machine {
  std::string id;     // /etc/machine-id: a full image brings it along
  std::string board;  // the firmware's product_uuid, lower case; empty: it can't be read, or is not unique
};
Machine read_machine(const SystemRoot& root);

// This host, to targets that keep reservations.
struct LocalRegistrant {
  std::string host_id;
  std::uint64_t key = 0;         // the same at every start, never 0
  std::uint64_t former_key = 0;  // without the board, as earlier releases had it; 0: the same
};
LocalRegistrant local_registrant(const HostIdentity& host, const Machine& machine);

}  // namespace spark::nvmetcp
