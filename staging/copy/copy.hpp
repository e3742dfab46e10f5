// The copy engine: a file or folder, hashed while it is read, published under its name by one rename.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "base/units.hpp"
#include "staging/copy/lanes/options.hpp"
#include "staging/copy/lanes/progress.hpp"
#include "staging/copy/partial/partial_area.hpp"  // was_taken_over, for callers

namespace spark::staging {

struct CopyReport {
  Bytes bytes = 0;                   // of file content in the published set
  std::uint64_t files = 0;           // regular files in the published set
  double seconds = 0;                // from the call until durable and published
  std::string hash;                  // of the whole set, see Manifest::hash
  Bytes resumed_bytes = 0;           // taken over from an earlier attempt
  Bytes unchanged_bytes = 0;         // taken over from an earlier copy of the same source
  Bytes bytes_from_peers = 0;        // received from other hosts
  Bytes memfree_drop_bytes = 0;      // largest drop of MemFree during the copy
  std::uint64_t sha256_files = 0;    // files checked against their published SHA-256
  bool unchanged = false;            // the source equals an earlier copy; nothing was copied
  std::vector<std::string> skipped;  // FIFOs, sockets and device nodes, printable: "a/pipe (FIFO)"
  // Sentences about differences from the source, or about options without effect.
  std::vector<std::string> warnings;
  std::uint64_t outside_links = 0;  // links that lead out of the set, kept as links in the copy
  std::uint64_t copied_links = 0;   // links replaced by their targets in the copy
};

// Copies to `destination`. It must not exist, or be an earlier copy made by this program and not changed
// since, which is replaced; anything else there is Refused. Its parent folder must exist. A copy in progress
// is beside it in .NAME.spark-partial, which stays for the next attempt if this one fails. The manifest is
// .NAME.spark-manifest; it identifies an earlier copy. If the source equals an earlier copy (is_same_source),
// nothing is copied. NoSpace before the first byte, with the numbers; Cancelled if `stop` was set; Mismatch
// if `verify` found a difference in the copy, or `sha256` a file that differs from its publisher's digest
// (see check_digests). With `verify`, an equal earlier copy is read back too: if it is damaged, everything is
// copied again, and nothing is shared with it. An error for which was_taken_over() holds if another host took
// its partial folder.
Result<CopyReport> copy(const std::filesystem::path& source, const std::filesystem::path& destination,
                        const CopyOptions& options, const ProgressSink& progress, const StopFlag& stop);

}  // namespace spark::staging
