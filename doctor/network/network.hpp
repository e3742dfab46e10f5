// The way to each target: routes, cards, packet sizes.
#pragma once

#include "doctor/checks/host.hpp"

namespace spark::doctor {

void check_network(const Host& host, Report& report);

}  // namespace spark::doctor
