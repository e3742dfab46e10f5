// errno and the kernel's log lines, made into sentences. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

// The operation that the kernel refused.
struct ConnectAttempt {
  std::string subsystem;  // NQN; the discovery NQN for a discovery controller
  std::string portal;     // as for people: "10.0.0.5:4420"
  std::string host_nqn;
  ConnectOptions options;
  bool discovery = false;  // to read the discovery log
};

// Why a write to /dev/nvme-fabrics failed with `number`. `kernel_log` has the kernel's messages meanwhile,
// maybe nothing: it alone tells why a target refused. Denied: this host is not allowed. NotFound: no such
// subsystem there (Unsupported: no discovery service). Refused: a key that was given is wrong. Unavailable:
// worth another attempt.
Error explain_connect(int number, const std::vector<std::string>& kernel_log, const ConnectAttempt& attempt);

// Whether the kernel refused a connect because the target gave it the number of another that is still there.
bool is_number_taken(const std::vector<std::string>& kernel_log);

}  // namespace spark::nvmetcp
