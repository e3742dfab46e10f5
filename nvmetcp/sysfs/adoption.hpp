// The meaning of existing controllers for a connect. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

// The controller for (subsystem, one of these portals, host NQN, interface if one is asked for) to use
// instead of a new one; no value: there is none. Unavailable: it is there but not live now (the kernel
// reconnects it, or it is being removed), so neither adopting nor connecting would work.
Result<std::optional<Controller>> find_adoptable(const std::vector<Controller>& all,
                                                 const std::string& subsystem,
                                                 const std::vector<Portal>& numeric, const HostIdentity& host,
                                                 const std::string& interface);

// The connection to the discovery service at one of these portals that this program made, live or not; no
// value: there is none.
std::optional<Controller> find_own_discovery(const std::vector<Controller>& all,
                                             const std::vector<Portal>& numeric, const HostIdentity& host,
                                             const std::string& interface);

// The kernel accepts one host id for a host NQN and the other way round, over all its connections. Invalid:
// a controller that is there says otherwise.
Result<> check_host_conflict(const std::vector<Controller>& all, const HostIdentity& host);

}  // namespace spark::nvmetcp
