// Taking one controller away. Can hang in the kernel while the target is dead: workers only.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

// Refused: a namespace that only these controllers lead to is in use on this host, and not covered.
Result<> check_unused(const SystemRoot& root, const std::vector<std::string>& leaving, const CutOff& cut_off);

// Removes the controller and waits until it is gone. A target that went silent costs up to its keep-alive.
// AlreadyThere: there was none of this name. Refused: it belongs to another subsystem or transport, or to
// another program (registry.hpp), or it is the last path to a namespace that is in use on this host and not
// covered. TimedOut: the kernel is still busy with it.
Result<Change> remove_controller(const SystemRoot& root, const std::string& controller,
                                 const std::string& subsystem, const CutOff& cut_off,
                                 std::chrono::milliseconds deadline);

}  // namespace spark::nvmetcp
