// Whether a copy on the disk still equals its manifest.
#pragma once

#include <vector>

#include "base/threads.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/lanes/options.hpp"
#include "staging/copy/partial/partial_area.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::staging {

// Whole: whether something is missing; what was added, permissions and owners don't count.
enum class Comparison { Exact, Whole };

// Compares names, types, sizes, permissions, owners (as root), modification times of files, and link targets;
// reads no content. Returns the differences, printable, at most `limit`.
Result<std::vector<std::string>> compare_metadata(const Tree& copy, ManifestReader& manifest,
                                                  std::size_t limit, const StopFlag& stop,
                                                  FileTimes times = FileTimes::Compared,
                                                  Comparison comparison = Comparison::Exact);

// Mismatch with these differences, if there are any.
Result<> check_equal(const Tree& copy, std::vector<std::string> differences);

// The same as compare_metadata, and reads every file back from the disk and hashes it. Mismatch names the
// first entries that differ. `manifest` must be at its beginning; returns its summary.
Result<Summary> verify_copy(const Tree& copy, ManifestReader& manifest, const CopyOptions& options,
                            Monitor& monitor, const StopFlag& stop, FileTimes times = FileTimes::Compared);

// Gives the files of a verified copy the manifest's modification times; the manifest must be at its
// beginning.
Result<> restore_times(const Tree& copy, ManifestReader& manifest);

// verify_copy of a sealed partial area. After damage the next attempt takes over nothing of it.
Result<> verify_partial(PartialArea& area, const CopyOptions& options, Monitor& monitor,
                        const StopFlag& stop);

}  // namespace spark::staging
