// Checks this host, its network and its targets. Changes nothing; checks that can hang have a deadline.
#pragma once

#include "doctor/checks/host.hpp"

namespace spark::doctor {

Report examine(const Host& host);

}  // namespace spark::doctor
