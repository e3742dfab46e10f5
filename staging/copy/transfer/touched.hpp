// Files of a source that only look changed: chmod, chown, a further link or a restore with the old times give
// a new ctime.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/lanes/options.hpp"
#include "staging/copy/partial/partial_area.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/manifest.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::staging {

struct Compared {
  std::vector<bool> equal;  // by walked entry: read, and found to have the content of the earlier copy
  bool is_same = false;     // the source differs from that copy in nothing but its ctimes
};

// Compares the walked entries with the manifest of an earlier copy. Files that differ from it in their ctime
// alone are read and hashed, and their attributes compared with the copy's. `area` remembers equal files for
// the next attempt. The entries of these files get their hashes.
Result<Compared> compare_touched(const Tree& source, Entries& walked, const Destination& earlier,
                                 const PartialArea& area, const CopyOptions& options, Monitor& monitor,
                                 const StopFlag& stop);

// Whether the source is as the manifest says, and its folders have the attributes that the copy has, ACLs
// among them, apart from those that it could not take. Only folders with another ctime are looked at.
bool is_same_source(const Tree& source, const Tree& copy, ManifestReader& manifest, const Entries& walked);

// Gives the copy's manifest the source's ctimes, but for folders. `walked` differs from it in nothing else.
Result<> renew(const Destination& copy, const Entries& walked);

}  // namespace spark::staging
