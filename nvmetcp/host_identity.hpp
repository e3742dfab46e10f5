// /etc/nvme/hostnqn and /etc/nvme/hostid, read and checked against each other.
#pragma once

#include "base/file.hpp"
#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

// NotFound: a file is missing or empty (says how to make both). Invalid: not an NQN, not a UUID, all zero, or
// a uuid-NQN whose UUID is not the hostid.
Result<HostIdentity> read_host_identity(const SystemRoot& root);

}  // namespace spark::nvmetcp
