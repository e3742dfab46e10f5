// Scripts that connect.
#pragma once

#include <string>
#include <vector>

#include "base/file.hpp"
#include "migration/survey/survey.hpp"

namespace spark::host {

// A sentence for each script of a unit, or rc.local, that connects. Scripts are not parsed. Needs the
// survey's devices and mounts.
std::vector<std::string> unread_scripts(const SystemRoot& root, const Survey& survey);

}  // namespace spark::host
