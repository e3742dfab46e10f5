// The verbs about this host and its configuration, and all verbs. Each adds itself to the command line.
#pragma once

#include "cli/command_line/app.hpp"

namespace spark::cli {

void add_status(App& app);
void add_jobs(App& app);
void add_cancel(App& app);
void add_discover(App& app);
void add_doctor(App& app);
void add_fleet(App& app);
void add_host(App& app);
void add_config(App& app);
void add_import(App& app);
void add_help(App& app);
void add_version(App& app);
void add_complete(App& app);
void add_manual(App& app);

// In the order of the help.
void add_all_verbs(App& app);

}  // namespace spark::cli
