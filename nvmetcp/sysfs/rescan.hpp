// Has the kernel look for the namespaces of a controller again.
#pragma once

#include <string>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::nvmetcp {

// Returns at once; what is found appears a moment later. The kernel looks by itself after a connect, and when
// the target tells of a change. Linux 6.1 also takes a namespace away whose identity is another after a
// reconnect, and does not look for the one in its place ("identifiers changed for nsid").
// NotFound: no such controller of that subsystem (any more). Refused: it is another program's.
Result<> rescan_namespaces(const SystemRoot& root, const std::string& controller,
                           const std::string& subsystem);

}  // namespace spark::nvmetcp
