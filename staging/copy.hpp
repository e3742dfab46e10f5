// The copy engine: a file or folder, hashed while it is read, published under its name by one rename.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "staging/manifest.hpp"

namespace spark::staging {

// How large files are read and written: Auto is io_uring where the kernel lets it, else threads.
enum class IoKind { Auto, Uring, Threads };

// What becomes of a symlink that leads out of what is copied: an absolute one, or one that climbs above its
// root. Keep: it stays a link, and is named in a warning. Copy: what it leads to is copied in its place, as
// long as that lies on the source's own mount. Refuse: nothing is copied.
enum class OutsideLinks { Keep, Copy, Refuse };

struct CopyOptions {
  unsigned threads = 0;  // that copy small files, and at most for large ones; 0: from the CPUs
  unsigned depth = 0;    // requests under way for large files; 0: found out
  Bytes chunk = 0;       // of one direct read or write; 0: found out
  IoKind io = IoKind::Auto;
  std::filesystem::path tuning_file;  // remembers what was found out, for each pair of drives; empty: nowhere
  Bytes max_rate = 0;                 // bytes per second; 0: no limit
  std::vector<std::string> exclude;   // shell patterns against the path inside the dataset and its last name
  OutsideLinks links = OutsideLinks::Keep;
  bool verify = false;  // read the copy back from the disk and compare before publishing
  bool sha256 = false;  // before publishing check the digests that the set itself has of its files
  Bytes keep_free = 0;  // bytes of the destination's file system that have to stay free
};

enum class CopyPhase { Walking, Copying, Flushing, Verifying, Publishing };

// A snapshot, given about four times a second from one thread.
struct CopyProgress {
  CopyPhase phase = CopyPhase::Walking;
  Bytes bytes_done = 0, bytes_total = 0;
  std::uint64_t files_done = 0, files_total = 0;
  double seconds = 0;
  Bytes bytes_per_second = 0;   // lately
  std::optional<double> eta_s;  // only goes down unless the run stalls; none: not known
  std::string bottleneck;       // "source", "local drive", "small files", "hash", "throttle"; empty: none now
  std::string reason;           // what it waits for; empty: nothing
};
using ProgressSink = std::function<void(const CopyProgress&)>;

struct CopyReport {
  Bytes bytes = 0;                    // of file content in the published set
  std::uint64_t files = 0;            // regular files in the published set
  double seconds = 0;                 // from the call to durable and published
  std::string hash;                   // of the whole set, see Manifest::hash
  Bytes resumed_bytes = 0;            // taken over from an earlier attempt instead of copied
  Bytes unchanged_bytes = 0;          // taken over from an earlier copy of the same source
  Bytes memfree_drop_bytes = 0;       // how far MemFree fell at most while copying
  std::uint64_t sha256_files = 0;     // whose published SHA-256 was checked
  bool unchanged = false;             // the source equals an earlier copy: nothing was copied
  std::vector<std::string> skipped;   // FIFOs, sockets and device nodes, printable: "a/pipe (FIFO)"
  std::vector<std::string> warnings;  // sentences about what is not as it is in the source, or of no use
  std::uint64_t outside_links = 0;    // that lead out of the set, and are links in the copy
  std::uint64_t copied_links = 0;     // in whose place the copy has what they lead to
};

// Stops a copy from another thread or a signal handler; the partial copy stays for the next attempt.
using StopFlag = std::atomic<bool>;

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
