// /etc/nvme/hostnqn and /etc/nvme/hostid, read and checked against each other.
#pragma once

#include <optional>
#include <string>

#include "base/file.hpp"
#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

// NotFound: a file is missing or empty (says how to make both). Invalid: not an NQN, not a UUID, or all zero.
Result<HostIdentity> read_host_identity(const SystemRoot& root);

// A sentence when the UUID of a uuid-NQN is not the host id. No error: the packages of nvme-cli in Debian and
// Ubuntu make the two files so, and kernels and targets accept it.
std::optional<std::string> identity_doubt(const HostIdentity& host);

}  // namespace spark::nvmetcp
