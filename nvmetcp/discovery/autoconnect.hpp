// The reaction of nvme-cli on this host to a target's change notification.
#pragma once

#include <string>

#include "base/file.hpp"

namespace spark::nvmetcp {

// nvme-cli before 3 brings a udev rule that answers each change, heard of over whosever connection to a
// discovery service, with `nvme connect-all`: everything that the target offers is connected. Version 3
// leaves connections that have an owner alone. The rule's file if it is in force here, else empty. Reads
// /etc, /run and /usr/lib only.
std::string autoconnect_rule(const SystemRoot& root);

}  // namespace spark::nvmetcp
