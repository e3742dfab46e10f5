// The node's cache of datasets: what is staged, where, leased by whom. Opens a catalog (SQLite) and touches
// disks: workers and daemon-less verbs only.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/copy/copy.hpp"

namespace spark::staging {

struct CacheConfig {
  std::filesystem::path path;       // the folder that holds the copies
  std::filesystem::path state_dir;  // holds catalog.sqlite
  Bytes capacity = 0;               // on the disk; 0: no limit but keep_free
  Bytes keep_free = 0;
  std::uint64_t capacity_inodes = 0, keep_free_inodes = 0;  // the same of inodes; 0: no limit, none
  // Nobody can write to a published copy, so that generations may share files. Where jobs can, they share at
  // most blocks.
  bool served_read_only = true;
};

// What the caller knows to be in use, before or beyond the leases in the catalog.
struct InUse {
  std::string dataset;
  std::uint64_t generation = 0;  // 0: whichever
};

// A dataset to stage: its name ("imagenet" or "volume:path") and where it can be read now.
struct Source {
  std::string dataset;
  std::filesystem::path path;
  std::vector<std::string> exclude;
  std::vector<InUse> in_use{};  // never evicted for it
  pid_t answers_for = 0;        // the process that its reserved space is tied to; 0: this one
  // Nothing is copied: NotFound where something would have to be, but a prefetch gets its room; see
  // Staged::is_reserved.
  bool only_cached = false;
  bool is_prefetch = false;  // for a job to come: it takes no room from what others have prefetched
  // Datasets that are being prefetched: these copies make way for it; see Staged::blocked_by.
  std::vector<std::string> prefetching{};
  // Of a volume that another host may write: which state of it this is, in words of the caller's own. A
  // partial copy of another state is not gone on with; a copy that equals this state is served without a
  // walk. Empty: there is nothing that would tell a change.
  std::string state{};
  std::filesystem::path within{};           // of a source with a state: where `path` is on its file system
  std::function<Result<>()> is_still_so{};  // asked after the last read, before anything is published
  bool is_away = false;      // nothing of it is read: all comes from hosts that have published the same state
  bool is_doubtful = false;  // it is being written: the copy is for who asks for it so
  std::uint64_t generation = 0;   // that the volume's writer gave this state; 0: none
  std::optional<dev_t> device{};  // of the file system that `path` has to lie on; none: any
  std::uint64_t task = 0;         // by the caller's count; see drop_ended_reservations
  // Id of a lease that keeps what is staged for the process above until the caller removes it: no other
  // dataset makes it go before the caller has leased it. Empty: none.
  std::string hold{};
};

// A dataset that had to make way.
struct Evicted {
  std::string dataset;
  Bytes bytes = 0;  // given back
};

enum class ServedFrom { Cache, Copied };

struct Staged {
  std::string dataset;
  std::filesystem::path path;  // of this generation; never changes under a job
  ServedFrom served_from = ServedFrom::Copied;
  std::uint64_t generation = 0;
  CopyReport report;
  std::vector<Evicted> evicted{};
  bool is_reserved = false;  // it is not staged yet, but its room is its own
  // It is not staged: there is room for it once the caller has ended these prefetches.
  std::vector<std::string> blocked_by{};
};

// The newest generation of a dataset.
struct DatasetRow {
  std::string name;
  std::filesystem::path path;
  Bytes bytes = 0;
  std::uint64_t files = 0;
  std::uint64_t generation = 0;
  std::string hash;
  std::string damage;        // what a verification found; empty: nothing. It is staged again, not served.
  bool is_doubtful = false;  // its source was being written meanwhile
  std::uint64_t source_generation = 0;  // that it was last found equal to, see Source::generation
  WallTime staged_at, last_used;
  WallTime good_at;  // when the file that was longest not looked at was written or last read back
  std::optional<WallTime> scrubbed_at;  // when all of it was last read back and compared; none: never
  bool is_evicting = false;             // it is not served; the rest of it could not be deleted
  // What could not be recovered or deleted of the dataset; empty: nothing. Without a generation only that is
  // known.
  std::string trouble;
};

struct Usage {
  Bytes capacity = 0, used = 0, free = 0;          // on the disk; free: what may still be staged
  std::uint64_t used_inodes = 0, free_inodes = 0;  // free: the largest number where they have no fixed count
};

// Layout below `path`, KEY being folder_name(dataset):
//   KEY -> data/KEY/GENERATION              the stable link
//   data/KEY/GENERATION                     published; its manifest beside it, .GENERATION.spark-manifest
//   .partial/KEY/                           being copied; its lock is the dataset's
//   .trash/                                 evicted, being deleted
//   .spark-stage-cache                      the folder's identity: a catalog never takes another for its own
// Order of publishing: data durable, manifest durable, rename, fsync of the parent, catalog commit, stable
// link. The catalog can be rebuilt from the manifests. Several processes may have a cache open; one thread
// at a time uses a Cache.
class Cache {
 public:
  // Makes the folders. Unavailable if `path` is not the folder that the catalog knows (its file system is not
  // mounted).
  static Result<std::unique_ptr<Cache>> open(const CacheConfig& config, const Clock& clock);
  virtual ~Cache() = default;

  // Completes or undoes what a crash left between two steps of publishing or evicting; once, when the daemon
  // has started. A dataset that it can't be done for has a trouble, and the others go on. Staging or evicting
  // a dataset does the same for that one. `looked_over` is called when list() tells what there is, and before
  // what was evicted is deleted, which may take long.
  virtual Result<> recover(const std::function<void()>& looked_over) = 0;

  // Copies nothing when the newest generation was found equal to the state that the source is in
  // (Source::state), without a walk; nor when the source equals its manifest (is_same_source) and it is
  // whole, by its metadata. Two at once share one copy: the second waits. Older generations go when no live
  // lease is on them. Space is reserved before the first byte, and others are evicted for it (eviction.hpp);
  // NoSpace with the numbers, and nothing evicted, when that would not be enough. Unavailable when the source
  // can't be read now, its device or server being in trouble: what is copied and its reserved space stay for
  // the next attempt.
  virtual Result<Staged> stage(const Source& source, const CopyOptions& options, const ProgressSink& progress,
                               const StopFlag& stop) = 0;
  virtual Result<std::vector<DatasetRow>> list() = 0;
  // Reads the newest copy from the disk and compares it with its manifest. Mismatch names the first differing
  // entries, and the copy is not served any more, as it is when it can't be read. NotFound if there is none.
  // With `sha256` it is then compared with what its publishers say (see check_digests); a copy that differs
  // in that is as its source is, and stays.
  virtual Result<CopyReport> verify(const std::string& dataset, const CopyOptions& options,
                                    const ProgressSink& progress, const StopFlag& stop) = 0;
  // Removes every generation and what is partial: renamed away first, then deleted. Refused, naming the
  // holder, while a live lease is on it, and when another process works on it for longer than a moment. Gives
  // the bytes freed.
  virtual Result<Bytes> evict(const std::string& dataset) = 0;
  virtual Result<Usage> usage() = 0;
  // Ends the reservations of copies that are over: of tasks up to `newest` (see Source::task) but these.
  virtual Result<> drop_ended_reservations(const std::vector<std::uint64_t>& in_progress,
                                           std::uint64_t newest) = 0;
};

}  // namespace spark::staging
