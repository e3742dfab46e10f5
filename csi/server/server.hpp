// The two sockets of the driver, and all that answers on them.
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "csi/server/options.hpp"

namespace spark::csi {

// Serves until `stop` is set, or kubelet refuses the driver, which is the error. Leaves mounts and leases as
// they are. A call that waits ends at once; whatever does not is left alone after two seconds, and the
// process ends.
Result<> serve(const Options& options, StopFlag& stop, const std::function<void(const std::string&)>& say);

}  // namespace spark::csi
