// The driver's two sockets and their gRPC services.
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "csi/server/options.hpp"

namespace spark::csi {

// Serves until `stop` is set, or until kubelet rejects the driver, which is returned as an error. Mounts and
// leases are kept. A waiting call ends at once; calls that do not end within two seconds are abandoned when
// the process exits.
Result<> serve(const Options& options, StopFlag& stop, const std::function<void(const std::string&)>& say);

}  // namespace spark::csi
