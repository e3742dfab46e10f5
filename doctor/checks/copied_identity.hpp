// Signs that this host's identity is another machine's too. A host alone can't prove that it is not.
#pragma once

#include "base/result.hpp"
#include "doctor/checks/host.hpp"
#include "nvmetcp/types.hpp"

namespace spark::doctor {

inline constexpr char kIdentityArea[] = "identity";
inline constexpr char kRenew[] =
    "`sudo spark-stage volumes down`, then `sudo spark-stage host new-identity`; enter the NQN "
    "that it prints at the targets";

// Older than the machine's own id; another board's UUID; registered at a target by another host or program.
void check_copies(const Host& host, const nvmetcp::HostIdentity& identity, Report& report);

// The reservation report of a namespace. Blocks while the target is silent.
Result<nvmetcp::ReservationReport> ask_reservation(const std::string& device, std::uint32_t nsid);

}  // namespace spark::doctor
