// The verbs about datasets and copies. Each adds itself to the command line; its file has its name.
#pragma once

#include "cli/command_line/app.hpp"

namespace spark::cli {

void add_stage(App& app);
void add_prefetch(App& app);
void add_stage_out(App& app);
void add_latest(App& app);
void add_run(App& app);
void add_ls(App& app);
void add_verify(App& app);
void add_scrub(App& app);
void add_evict(App& app);
void add_drop(App& app);
void add_release(App& app);
void add_cache(App& app);
void add_copy(App& app);

}  // namespace spark::cli
