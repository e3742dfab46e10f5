// A controller's settings as sysfs shows them, compared with the configured ones.
#pragma once

#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

// A sentence for each setting that is not as asked. Digests and queues can't be read back; an attribute that
// this kernel does not have proves nothing either way.
std::vector<std::string> differences(const SystemRoot& root, const Controller& controller,
                                     const ConnectOptions& asked);

// Sets the settings that can be changed on a live controller: reconnect_delay, controller_loss, fast_fail,
// and of its subsystem io_policy. Attributes that can't be written stay as they are; differences() tells.
void set_timers(const SystemRoot& root, const Controller& controller, const ConnectOptions& asked);

// The one of them that no option of a connect sets.
void set_io_policy(const SystemRoot& root, const std::string& controller, const ConnectOptions& asked);

// The same by name, proven by reading back. NotFound: no such controller of that subsystem (any more).
// Unsupported: the kernel did not take a timer. Refused: it is another program's.
Result<> change_timers(const SystemRoot& root, const std::string& controller, const std::string& subsystem,
                       const ConnectOptions& asked);

}  // namespace spark::nvmetcp
