// The host's cache of datasets: the staged copies, their paths and their leases. Opens a catalog (SQLite) and
// touches disks, so only workers and daemon-less verbs use it.
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
#include "staging/cache/catalog/catalog.hpp"
#include "staging/copy/copy.hpp"
#include "staging/files/walk.hpp"
#include "staging/models/model.hpp"

namespace spark::staging {

struct CacheConfig {
  std::filesystem::path path;       // the folder of the copies
  std::filesystem::path state_dir;  // holds catalog.sqlite
  Bytes capacity = 0;               // bytes on the disk; 0 means that only keep_free limits it
  Bytes keep_free = 0;
  std::uint64_t capacity_inodes = 0, keep_free_inodes = 0;  // the same in inodes; 0 means no limit
  // No job can write to a published copy, so generations may share files. If jobs can write, generations
  // share blocks at most.
  bool served_read_only = true;
  IfMissing if_missing = IfMissing::Make;  // the catalog
};

// A copy that the caller knows to be in use, in addition to the leases in the catalog.
struct InUse {
  std::string dataset;
  std::uint64_t generation = 0;  // 0 means any generation
};

// A copy that other hosts have, by its content.
struct CopyElsewhere {
  std::string hash;                       // see Summary
  std::function<Result<Model>()> walk{};  // its entries with their hashes; of a model also its record
};

// A dataset to stage: its name ("imagenet" or "volume:path") and its current path.
struct Source {
  std::string dataset;
  std::filesystem::path path;
  std::vector<std::string> exclude;
  std::vector<InUse> in_use{};  // never evicted for this staging
  pid_t answers_for = 0;        // its reserved space ends with this process; 0 means the calling process
  // Copies nothing: NotFound if anything would have to be copied. A prefetch still reserves its space; see
  // Staged::is_reserved.
  bool only_cached = false;
  bool is_prefetch = false;  // for a future job: does not evict datasets that others have prefetched
  // Datasets being prefetched: their copies may be ended for this one; see Staged::blocked_by.
  std::vector<std::string> prefetching{};
  // Identifies the source's current state, if another host may write the volume; the caller chooses the
  // format. A partial copy of another state is not resumed; a copy that equals this state is served without a
  // walk. Empty if the source has nothing that reveals a change.
  std::string state{};
  // Of a source without a state: how its files are compared between hosts. "nfs SERVER:/EXPORT": by
  // SourceIdentity, which all hosts see alike. "folder DATASET": by path, size and mtime; the user says
  // that the hosts' folders of that dataset are the same. Empty: it is not exchanged.
  std::string origin{};
  // The caller's definition of the dataset, in the caller's format. A copy has the last one that it was found
  // equal to.
  std::string definition{};
  std::filesystem::path within{};  // for a source with a state: `path` relative to its file system's root
  std::function<Result<>()> is_still_so{};  // called after the last read, before anything is published
  // The source is not read: all data comes from hosts that have published the same state.
  bool is_away = false;
  // There is no source on this host (is_away): the copy has to have this content.
  std::optional<CopyElsewhere> elsewhere{};
  bool is_doubtful = false;       // the source is being written: the copy is served only with --allow-dirty
  std::uint64_t generation = 0;   // given to this state by the volume's writer; 0 means none
  std::optional<dev_t> device{};  // the file system on which `path` must lie; none means any
  std::string mount{};            // and where that is mounted
  std::uint64_t task = 0;         // number of the staging in the caller's count; see drop_ended_reservations
  // ID of a lease that keeps the staged copy for the process above until the caller removes it, so that it is
  // not evicted before the caller has taken its own lease. Empty means no such lease.
  std::string hold{};
  std::optional<ModelOptions> model{};          // `exclude` and CopyOptions::links are then ignored
  std::function<void(const Walked&)> walked{};  // called with what was found, before anything is copied
};

// A dataset that was evicted.
struct Evicted {
  std::string dataset;
  Bytes bytes = 0;  // freed
};

// A model's copy, without its digests.
struct ModelInCache {
  ModelRecord record;
  // Programs can use it as a cache of Hugging Face, read-only; empty means they can't.
  std::filesystem::path hub_cache;
};

enum class ServedFrom { Cache, Copied };

struct Staged {
  std::string dataset;
  std::filesystem::path path;  // for jobs, in this generation; never changes while a job uses it
  ServedFrom served_from = ServedFrom::Copied;
  std::uint64_t generation = 0;
  CopyReport report;
  std::vector<Evicted> evicted{};
  std::optional<ModelInCache> model{};
  bool is_held = true;       // false: there is no space for the lease that was asked for; see Source::hold
  bool is_reserved = false;  // not staged yet, but its space is reserved
  // If not empty, the dataset is not staged: there is space for it once the caller has ended these
  // prefetches.
  std::vector<std::string> blocked_by{};
};

// The newest generation of a dataset. `good_at`: when the file checked least recently was written or last
// read back. A damaged copy is not served, but staged again.
struct DatasetRow : CopyFacts {
  std::string name;
  std::filesystem::path path;  // for jobs
  std::optional<ModelInCache> model;
  bool is_evicting = false;  // not served; parts of it could not be deleted yet
  // The part of the dataset that could not be recovered or deleted; empty means none. If the row has no
  // generation, nothing else is known.
  std::string trouble;
  std::vector<DatasetRow> older{};  // its earlier generations, newest first: leases keep them
};

struct Usage {
  Bytes capacity = 0, used = 0, free = 0;  // bytes on the disk; free: available for further copies
  // free_inodes: the maximum value if the file system has no fixed number of inodes.
  std::uint64_t used_inodes = 0, free_inodes = 0;
};

// Layout below `path`, KEY being folder_name(dataset):
//   KEY -> data/KEY/GENERATION              the stable link
//   data/KEY/GENERATION                     published; its manifest beside it, .GENERATION.spark-manifest
//   data/KEY/.spark-damage, -beside         see DamageRecords
//   .named/KEY/GENERATION/NAME              of a copy that is one file; see named_file.hpp
//   .partial/KEY/                           being copied; its lock is the dataset's
//   .trash/                                 evicted, being deleted
//   .leases/                                of the daemon, which the catalog could not take
//   .reserve/                               see Reserve
//   .spark-stage-cache                      the folder's identity, so that a catalog rejects any other folder
// Order of publishing: data durable, manifest durable, rename, fsync of the parent, catalog commit, stable
// link. The catalog can be rebuilt from the manifests. Several processes may have a cache open; one thread at
// a time uses a Cache.
class Cache {
 public:
  // Creates the folders; see CacheConfig::if_missing. Unavailable if `path` is not the folder that the
  // catalog knows, that is, its file system is not mounted.
  static Result<std::unique_ptr<Cache>> open(const CacheConfig& config, const Clock& clock);
  virtual ~Cache() = default;

  // Completes or undoes a publishing or an eviction that a crash interrupted; called once, after the daemon
  // has started. A dataset that can't be recovered gets a trouble; recovery continues with the others.
  // Staging or evicting a dataset also recovers that dataset. `looked_over` is called once list() is complete
  // and before evicted copies are deleted, which may take long.
  virtual Result<> recover(const std::function<void()>& looked_over) = 0;

  // Copies nothing if the newest generation is known to equal the source's state (Source::state), without a
  // walk; nor if the source equals its manifest (is_same_source) and its metadata shows that it is complete.
  // Two concurrent requests share one copy: the second waits. Older generations are removed once they have no
  // live lease. Space is reserved before the first byte, and other datasets are evicted for it
  // (eviction.hpp). If eviction would not free enough, the result is NoSpace with the numbers, and nothing is
  // evicted. Unavailable if the source can't be read now because its device or server fails: the partial copy
  // and its reserved space stay for the next attempt.
  virtual Result<Staged> stage(const Source& source, const CopyOptions& options, const ProgressSink& progress,
                               const StopFlag& stop) = 0;
  virtual Result<std::vector<DatasetRow>> list() = 0;
  // Reads the newest copy from the disk and compares it with its manifest. Mismatch names the first entries
  // that differ; a copy that differs or can't be read is no longer served. NotFound if there is no copy. With
  // `sha256`, the copy is then compared with its publishers' digests (see check_digests). A difference there
  // is already in the source, so the copy stays.
  virtual Result<CopyReport> verify(const std::string& dataset, const CopyOptions& options,
                                    const ProgressSink& progress, const StopFlag& stop) = 0;
  // Removes every generation and the partial copy: renamed away first, then deleted. Refused, naming the
  // holder, while a live lease is on it or a program has one of its files open, or if another process works
  // on it for longer than RoomTimings::lock. Returns the bytes freed.
  virtual Result<Bytes> evict(const std::string& dataset) = 0;
  virtual Result<Usage> usage() = 0;
  // Drops the reservations of ended copies: of tasks up to `newest` (see Source::task), except those in
  // progress.
  virtual Result<> drop_ended_reservations(const std::vector<std::uint64_t>& in_progress,
                                           std::uint64_t newest) = 0;
};

}  // namespace spark::staging
