// Puts back what the closing steps of an imported configuration changed.
#pragma once

#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark::host {

struct Undone {
  std::vector<std::string> files;      // restored: "/etc/fstab"
  std::vector<std::string> units;      // that were enabled
  std::vector<std::string> set_aside;  // FILE.before-undo: what stood in their place and was different
  std::string earlier;                 // the time of the move before it, which stays; empty: there is none
};

// From the copies of the last move in kKept, which are removed then. NotFound: there are none.
Result<Undone> undo_import(const SystemRoot& root);

}  // namespace spark::host
