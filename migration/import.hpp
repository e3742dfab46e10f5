// The configuration that replaces a manual setup.
#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "migration/survey.hpp"

namespace spark::host {

struct Imported {
  std::string yaml;  // always parses; settings that could not be imported are comments in it
  unsigned targets = 0, volumes = 0;
  unsigned left_out = 0;  // entries that are comments
};

// `root` resolves names like UUID=… of fstab.
Imported import_configuration(const SystemRoot& root, const Survey& survey, WallTime now);

}  // namespace spark::host
