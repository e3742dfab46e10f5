// Files of a source that only look changed: chmod, chown, a further link or a restore with the old times give
// a new ctime.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/lanes/options.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

struct Compared {
  std::vector<bool> equal;  // by walked entry: read, and found to have the content of the earlier copy
  bool is_all = false;  // nothing else differs from the manifest: it was replaced by one with the new ctimes
};

// Compares the walked entries with the manifest of an earlier copy. Files that differ from it in their ctime
// alone are read and hashed, and their attributes compared with the copy's.
Result<Compared> compare_touched(const Tree& source, const Entries& walked, const Destination& earlier,
                                 const CopyOptions& options, Monitor& monitor, const StopFlag& stop);

}  // namespace spark::staging
