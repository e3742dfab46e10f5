// Looks over this host, its network and its targets. Changes nothing; what can hang has a deadline.
#pragma once

#include "doctor/checks/host.hpp"

namespace spark::doctor {

Report examine(const Host& host);

}  // namespace spark::doctor
