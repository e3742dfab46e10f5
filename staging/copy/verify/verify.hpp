// Whether a copy on the disk is still what its manifest says.
#pragma once

#include <vector>

#include "base/threads.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/lanes/options.hpp"
#include "staging/copy/partial/partial_area.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::staging {

// Whether modification times of files have to be the manifest's. On NFS they need not be: Linux's server sets
// the present time when it takes a write delegation back (nfsd, "freeze c/mtime updates with outstanding
// WRITE_ATTRS delegation").
enum class FileTimes { Compared, Ignored };

// Names, types, sizes, permissions, owners (as root), modification times of files, targets: no content is
// read. Gives the differences, printable, at most `limit`.
Result<std::vector<std::string>> compare_metadata(const Tree& copy, ManifestReader& manifest,
                                                  std::size_t limit, const StopFlag& stop,
                                                  FileTimes times = FileTimes::Compared);

// That, and every file read back from the disk and hashed. Mismatch names the first differing entries.
// `manifest` at its begin; gives what it adds up to.
Result<Summary> verify_copy(const Tree& copy, ManifestReader& manifest, const CopyOptions& options,
                            Monitor& monitor, const StopFlag& stop, FileTimes times = FileTimes::Compared);

// verify_copy of a sealed partial area. After a Mismatch nothing of it is taken over by the next attempt.
Result<> verify_partial(PartialArea& area, const CopyOptions& options, Monitor& monitor,
                        const StopFlag& stop);

}  // namespace spark::staging
