// The seam to the fabric: discover, connect, disconnect. Every call may block for seconds in the kernel:
// workers only.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

struct Connection {
  std::string controller;        // "nvme3"
  Change change = Change::Done;  // AlreadyThere: a matching live connection was adopted
  // Adopted only: settings that are not as asked and can't be changed while it lives or are another program's
  // to change, a sentence each.
  std::vector<std::string> differences;
};

class NvmeGateway {
 public:
  virtual ~NvmeGateway() = default;

  // The target's discovery log, re-read until its generation holds still. Unavailable: not reached.
  // Unsupported: the target answers but has no discovery service. Denied: it does not let this host ask.
  virtual Result<DiscoveryLog> discover(const Portal& portal, const HostIdentity& host,
                                        const std::string& interface) = 0;

  // A connection to the target's discovery service that stays, so that the target reports changes: the
  // kernel turns them into uevents of the controller. Adopts the one that this program made before. Errors:
  // as discover(); Refused: the host's administrator excludes it.
  virtual Result<Connection> watch_discovery(const Portal& portal, const HostIdentity& host,
                                             const std::string& interface) = 0;

  // The current discovery log over such a connection. Reading it makes the target report the next change
  // again. NotFound: no such connection of ours. Unavailable: it is not live now.
  virtual Result<DiscoveryLog> read_discovery(const std::string& controller) = 0;

  // Connects one portal of a subsystem, or adopts the controller that is already there for (NQN, portal, host
  // NQN), setting its timers as asked. Unsupported: an asked-for option is not in the kernel's list, or not
  // in force after the connect. Denied: the target refused this host. NotFound: it has no such subsystem.
  // Invalid: the options, or the host identity against other connections. Refused: keys that were asked for
  // are missing, rejected or not in force, or the host's administrator excludes this connection
  // (exclusions.hpp). Unavailable: worth another attempt. A connection made here, once its keys are proven,
  // or adopted without an owner, is ours (registry.hpp); one of another program is used unchanged. If keys
  // are asked for, one without an owner that is not in use is replaced.
  virtual Result<Connection> connect(const std::string& subsystem, const Portal& portal,
                                     const HostIdentity& host, const ConnectOptions& options) = 0;

  // Disconnects one controller and waits until it is gone; AlreadyThere: it was. Refused: its NQN is not
  // `subsystem`, it is another program's, or it is the last path to a namespace in use that `cut_off` does
  // not cover. TimedOut: the kernel has not finished.
  virtual Result<Change> disconnect(const std::string& controller, const std::string& subsystem,
                                    const CutOff& cut_off) = 0;
};

}  // namespace spark::nvmetcp
