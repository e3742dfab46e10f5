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

struct DatasetRow {
  std::string name;
  std::filesystem::path path;
  Bytes bytes = 0;
  std::uint64_t files = 0;
  std::uint64_t generation = 0;
  std::string hash;
  WallTime staged_at, last_used;
};

struct Usage {
  Bytes capacity = 0, used = 0, free = 0;  // free: what may still be staged
};

// Layout below `path`:  data/KEY/GENERATION/  published   .partial/KEY/  being copied
// .manifests/KEY.GENERATION
//                       NAME -> data/KEY/GENERATION  the stable link
// Order of publishing: data durable, manifest durable, rename, fsync of the parent, catalog commit, stable
// link.
class Cache {
 public:
  // Makes the folders; completes or undoes what a crash left between two steps of publishing.
  static Result<std::unique_ptr<Cache>> open(const CacheConfig& config, const Clock& clock);
  virtual ~Cache() = default;

  // Copies nothing when the source equals the current generation's manifest (type, size, mtime, ctime,
  // inode).
  virtual Result<Staged> stage(const Source& source, const CopyOptions& options, const ProgressSink& progress,
                               const StopFlag& stop) = 0;
  virtual Result<std::vector<DatasetRow>> list() = 0;
  // Reads the copy from the disk and compares it with its manifest. Mismatch names the first differing
  // entries.
  virtual Result<CopyReport> verify(const std::string& dataset, const ProgressSink& progress,
                                    const StopFlag& stop) = 0;
  // Removes every generation: renamed away first, then deleted.
  virtual Result<Bytes> evict(const std::string& dataset) = 0;
  virtual Result<Usage> usage() = 0;
};

}  // namespace spark::staging
