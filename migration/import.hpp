// The configuration that replaces what was set up by hand.
#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "migration/survey.hpp"

namespace spark::host {

struct Imported {
  std::string yaml;  // parses, whatever was found; what could not be taken over stands in it as comments
  unsigned targets = 0, volumes = 0;
  unsigned left_out = 0;  // entries that are comments
};

// `root` resolves names like UUID=… of fstab.
Imported import_configuration(const SystemRoot& root, const Survey& survey, WallTime now);

}  // namespace spark::host
