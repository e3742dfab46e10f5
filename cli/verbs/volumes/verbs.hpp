// The verbs about volumes. Each adds itself to the command line; its file has its name.
#pragma once

#include "cli/command_line/app.hpp"

namespace spark::cli {

void add_volumes(App& app);
void add_take(App& app, const Verb& group);     // of `volumes`
void add_publish(App& app, const Verb& group);  // of `volumes`
void add_format(App& app, const Verb& group);   // of `volumes`
void add_wait(App& app);

}  // namespace spark::cli
