// The page of /metrics.
#pragma once

#include <string>

#include "daemon/service/parts.hpp"

namespace spark {

// In Prometheus's text format, with the current values.
std::string metrics_text(const DaemonParts& daemon);

}  // namespace spark
