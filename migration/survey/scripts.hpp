// Scripts that connect.
#pragma once

#include <string>
#include <vector>

#include "base/file.hpp"
#include "migration/survey/survey.hpp"

namespace spark::host {

// A sentence for each script of a unit, rc.local, or table of cron that connects. They are not parsed. Needs
// the survey's devices and mounts.
std::vector<std::string> unread_scripts(const SystemRoot& root, const Survey& survey);

}  // namespace spark::host
