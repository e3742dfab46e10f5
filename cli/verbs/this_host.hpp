// The host that doctor and the tests of links look at.
#pragma once

#include "cli/context.hpp"
#include "doctor/checks/host.hpp"
#include "doctor/checks/report.hpp"
#include "doctor/network/links.hpp"

namespace spark::cli {

// Refers to the context.
doctor::Host this_host(const Context& context);

// Peers need the key of the configuration's fleet, which only root can read. Progress goes to a terminal.
// Data moves in bursts that take a quarter of the time, or in `is_full` all of it.
doctor::LinkMeter link_meter(Context& context, const doctor::Host& host, bool is_full);

// The exit status: 1 if something is wrong.
int show_report(Context& context, const doctor::Report& report, bool as_json);

}  // namespace spark::cli
