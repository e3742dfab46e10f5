// Has the kernel look for the namespaces of a controller again.
#pragma once

#include <string>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::nvmetcp {

// Returns at once; new namespaces appear a moment later. The kernel scans automatically after a connect, and
// when the target reports a change. Linux 6.1 also removes a namespace with a changed identity after a
// reconnect, and does not scan for its replacement ("identifiers changed for nsid").
// NotFound: no such controller of that subsystem (any more). Refused: it is another program's.
Result<> rescan_namespaces(const SystemRoot& root, const std::string& controller,
                           const std::string& subsystem);

}  // namespace spark::nvmetcp
