// The seam to the fabric: discover, connect, disconnect. Every call may block for seconds in the kernel:
// workers only.
#pragma once

#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

struct Connection {
  std::string controller;        // "nvme3"
  Change change = Change::Done;  // AlreadyThere: a matching live connection was adopted
};

class NvmeGateway {
 public:
  virtual ~NvmeGateway() = default;

  // The target's discovery log, re-read until its generation holds still. Unavailable: not reached.
  // Unsupported: the target answers but has no discovery service.
  virtual Result<DiscoveryLog> discover(const Portal& portal, const HostIdentity& host,
                                        const std::string& interface) = 0;

  // Connects one portal of a subsystem, or adopts the controller that is already there for (NQN, portal, host
  // NQN). Unsupported: an asked-for option is not in the kernel's list. Denied: the target refused this host.
  virtual Result<Connection> connect(const std::string& subsystem, const Portal& portal,
                                     const HostIdentity& host, const ConnectOptions& options) = 0;

  // Disconnects one controller; refuses if its NQN is not `subsystem`. The caller has unmounted before.
  virtual Result<Change> disconnect(const std::string& controller, const std::string& subsystem) = 0;
};

}  // namespace spark::nvmetcp
