// Every verb, in the order of the help. Each adds itself to the command line; its file has its name.
#pragma once

#include "cli/app.hpp"

namespace spark::cli {

void add_status(App& app);
void add_discover(App& app);
void add_volumes(App& app);
void add_take(App& app, const Verb& group);     // of `volumes`
void add_publish(App& app, const Verb& group);  // of `volumes`
void add_format(App& app, const Verb& group);   // of `volumes`
void add_wait(App& app);
void add_stage(App& app);
void add_run(App& app);
void add_ls(App& app);
void add_verify(App& app);
void add_scrub(App& app);
void add_evict(App& app);
void add_release(App& app);
void add_copy(App& app);
void add_bench(App& app);
void add_doctor(App& app);
void add_host(App& app);
void add_config(App& app);
void add_import(App& app);
void add_complete(App& app);

void add_all_verbs(App& app);

}  // namespace spark::cli
