// Puts back what the closing steps of an imported configuration changed.
#pragma once

#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::host {

struct Undone {
  std::vector<std::string> files;      // restored: "/etc/fstab"
  std::vector<std::string> units;      // of them, to be enabled again
  std::vector<std::string> set_aside;  // what stood in their place and was different, now FILE.before-undo
};

// From the copies in kKept, which are removed after the last one. NotFound: there are none.
Result<Undone> undo_import(const SystemRoot& root);

}  // namespace spark::host
