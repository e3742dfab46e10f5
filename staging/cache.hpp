// The node's cache of datasets: what is staged, where, leased by whom. Opens a catalog (SQLite) and touches
// disks: workers and daemon-less verbs only.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "staging/copy.hpp"

namespace spark::staging {

struct CacheConfig {
  std::filesystem::path path;       // the folder that holds the copies
  std::filesystem::path state_dir;  // holds catalog.sqlite
  Bytes capacity = 0;               // 0: no limit but keep_free
  Bytes keep_free = 0;              // bytes
};

// A dataset to stage: its name ("imagenet" or "volume:path") and where it can be read now.
struct Source {
  std::string dataset;
  std::filesystem::path path;
  std::vector<std::string> exclude;
};

enum class ServedFrom { Cache, Copied };

struct Staged {
  std::string dataset;
  std::filesystem::path path;  // of this generation; never changes under a job
  ServedFrom served_from = ServedFrom::Copied;
  std::uint64_t generation = 0;
  CopyReport report;
};

// The newest generation of a dataset.
struct DatasetRow {
  std::string name;
  std::filesystem::path path;
  Bytes bytes = 0;
  std::uint64_t files = 0;
  std::uint64_t generation = 0;
  std::string hash;
  std::string damage;  // what a verification found; empty: nothing. It is staged again, not served.
  WallTime staged_at, last_used;
};

struct Usage {
  Bytes capacity = 0, used = 0, free = 0;  // free: what may still be staged
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
  // Makes the folders; completes or undoes what a crash left between two steps of publishing or evicting.
  // Unavailable if `path` is not the folder that the catalog knows (its file system is not mounted).
  static Result<std::unique_ptr<Cache>> open(const CacheConfig& config, const Clock& clock);
  virtual ~Cache() = default;

  // Copies nothing when the source equals the newest generation's manifest (is_same_source) and that
  // generation is whole, by its metadata. Two at once share one copy: the second waits. Older generations go
  // when no live lease is on them. NoSpace with the numbers before the first byte.
  virtual Result<Staged> stage(const Source& source, const CopyOptions& options, const ProgressSink& progress,
                               const StopFlag& stop) = 0;
  virtual Result<std::vector<DatasetRow>> list() = 0;
  // Reads the newest copy from the disk and compares it with its manifest. Mismatch names the first differing
  // entries, and the copy is not served any more. NotFound if there is none.
  virtual Result<CopyReport> verify(const std::string& dataset, const ProgressSink& progress,
                                    const StopFlag& stop) = 0;
  // Removes every generation and what is partial: renamed away first, then deleted. Refused, naming the
  // holder, while a live lease is on it, and while it is being staged. Gives the bytes freed.
  virtual Result<Bytes> evict(const std::string& dataset) = 0;
  virtual Result<Usage> usage() = 0;
};

}  // namespace spark::staging
