// Scripts that connect.
#pragma once

#include <string>
#include <vector>

#include "migration/survey/local_files.hpp"

namespace spark::host {

// A sentence for each script of a unit, rc.local, or table of cron that connects. They are not
// parsed.
std::vector<std::string> unread_scripts(const LocalFiles& files);

}  // namespace spark::host
