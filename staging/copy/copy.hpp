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

namespace spark::staging {

struct CopyReport {
  Bytes bytes = 0;                    // of file content in the published set
  std::uint64_t files = 0;            // regular files in the published set
  double seconds = 0;                 // from the call to durable and published
  std::string hash;                   // of the whole set, see Manifest::hash
  Bytes resumed_bytes = 0;            // taken over from an earlier attempt instead of copied
  Bytes unchanged_bytes = 0;          // taken over from an earlier copy of the same source
  Bytes bytes_from_peers = 0;         // got from other hosts instead of from the source
  Bytes memfree_drop_bytes = 0;       // how far MemFree fell at most while copying
  std::uint64_t sha256_files = 0;     // whose published SHA-256 was checked
  bool unchanged = false;             // the source equals an earlier copy: nothing was copied
  std::vector<std::string> skipped;   // FIFOs, sockets and device nodes, printable: "a/pipe (FIFO)"
  std::vector<std::string> warnings;  // sentences about what is not as it is in the source, or of no use
  std::uint64_t outside_links = 0;    // that lead out of the set, and are links in the copy
  std::uint64_t copied_links = 0;     // in whose place the copy has what they lead to
};

// Copies to the name `destination`, which must not exist yet or be an earlier copy of ours that nobody
// changed since; that one is replaced, anything else there is Refused. Its folder has to exist. While it
// grows the copy is beside it, in .NAME.spark-partial, which stays for the next attempt when this one fails;
// its manifest is .NAME.spark-manifest, and by that an earlier copy of ours is known. A source that equals an
// earlier copy (is_same_source) copies nothing. NoSpace before the first byte, with the numbers; Cancelled
// when `stop` was set; Mismatch when `verify` found the copy different, or `sha256` a file that is not what
// its publisher says (see check_digests).
Result<CopyReport> copy(const std::filesystem::path& source, const std::filesystem::path& destination,
                        const CopyOptions& options, const ProgressSink& progress, const StopFlag& stop);

}  // namespace spark::staging
