// The configuration in force, as plain values. Made by parse.hpp, read by everyone; compared on reload.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "nvmetcp/types.hpp"

namespace spark::config {

struct Target {
  std::string name;
  std::vector<nvmetcp::Portal> portals;  // at least one
  nvmetcp::ConnectOptions options;       // of every connection to it
  bool operator==(const Target&) const = default;
};

enum class Access { ReadOnly, Exclusive };
enum class Fence { Auto, Reservation, Mmp, None };

// Instead of a namespace's number, which is 1 or more: whichever of the subsystem is mounted there.
inline constexpr std::uint32_t kAnyNamespace = 0;

struct NvmeSource {
  std::string target;  // key of Config::targets
  std::string subsystem;
  std::uint32_t nsid = 1;
  std::string filesystem_type, filesystem_uuid;  // empty: not pinned in the config; UUID in lower case
  bool operator==(const NvmeSource&) const = default;
};

struct NfsSource {
  std::string host, path;  // "192.168.0.98" or "[fd00::1]", "/data/shared": the source is host + ":" + path

  bool operator==(const NfsSource&) const = default;
};

// What becomes of a mount whose device is gone while programs have its files open: replaced, so that they get
// errors and new ones work; or held until they have closed them.
enum class OnLoss { Remount, Hold };

struct Volume {
  std::string name;
  std::optional<NvmeSource> nvme;  // exactly one of the two
  std::optional<NfsSource> nfs;
  std::filesystem::path mount;
  Access access = Access::ReadOnly;
  Fence fence = Fence::Auto;
  OnLoss on_loss = OnLoss::Remount;
  std::vector<std::string> options;
  bool operator==(const Volume&) const = default;
};

// A size in bytes or as a part of the file system.
struct Amount {
  Bytes bytes = 0;
  double percent = 0;  // > 0: used instead of bytes
  bool operator==(const Amount&) const = default;
};

// How the copies into the cache are made; 0: chosen from the CPUs.
struct EngineSettings {
  unsigned threads = 0;  // for small files
  unsigned depth = 0;    // requests under way for large files
  Bytes chunk = 0;       // of one such request
  bool operator==(const EngineSettings&) const = default;
};

struct CacheSettings {
  std::filesystem::path path = "/var/lib/spark-stage/cache";
  Amount capacity;  // both 0: all of the file system but keep_free
  Amount keep_free{0, 5};
  std::optional<std::chrono::seconds> scrub = std::chrono::hours(30 * 24);  // none: off
  bool yield = true;  // copies stand back while a dataset is leased
  EngineSettings engine;
  bool operator==(const CacheSettings&) const = default;
};

// What becomes of symlinks that lead out of a dataset: see staging::OutsideLinks.
enum class Links { Keep, Copy, Refuse };

struct Dataset {
  std::string name;
  std::string volume;  // empty: `path` is absolute, any folder
  std::string path;    // "." is the whole volume
  std::vector<std::string> exclude;
  Links links = Links::Keep;
  std::string env;                      // one more variable that `run` sets; empty: none
  std::vector<std::string> namespaces;  // of Kubernetes, whose pods may use it; empty: all
  bool operator==(const Dataset&) const = default;
};

// When what a job writes below an output's folder is a complete checkpoint: see staging::Completeness.
enum class Complete { OnRequest, Rename, Dcp, HuggingFace, DeepSpeed, Marker };

// What a job writes here, and belongs on a volume.
struct Output {
  std::string name;
  std::filesystem::path path;  // the folder whose entries are the checkpoints
  std::string volume, to;      // where they are sent; `to` is relative to the volume
  Complete complete = Complete::OnRequest;
  std::string marker;            // of Complete::Marker: a file's name
  std::uint32_t keep = 0;        // newest checkpoints on the volume; 0: all
  std::uint32_t keep_local = 0;  // newest checkpoints here; 0: all
  std::uint32_t keep_every = 0;  // checkpoints whose number is a multiple are all sent and kept; 0: none
  std::uint32_t nodes = 0;       // hosts whose shards make one checkpoint; 0: this one has all of it
  std::vector<std::string> namespaces;  // of Kubernetes, whose pods may write there; empty: none
  bool operator==(const Output&) const = default;
};

struct MetricsSettings {
  std::optional<nvmetcp::Portal> listen;  // an IP address and a port; none: only on the API's socket
  bool operator==(const MetricsSettings&) const = default;
};

// The hosts that exchange what they stage. None of it: they do not.
struct FleetSettings {
  std::optional<nvmetcp::Portal> listen;  // an IP address and a port
  std::filesystem::path key_file;
  std::map<std::string, std::vector<nvmetcp::Portal>> peers;  // at least one address each; may name this host
  std::optional<nvmetcp::Portal> dns;  // a name that resolves to the addresses of all hosts, and their port
  std::vector<std::string> allow;      // host NQNs that may ask this host; empty: all that have the key
  Amount upload{0, 50};  // bytes per second, or a part of the link, while a dataset is leased here
  bool operator==(const FleetSettings&) const = default;
};

struct Config {
  std::filesystem::path file;  // where it was read from
  std::map<std::string, Target> targets;
  std::vector<Volume> volumes;  // in the file's order
  CacheSettings cache;
  std::map<std::string, Dataset> datasets;
  std::map<std::string, Output> outputs;
  MetricsSettings metrics;
  FleetSettings fleet;
  bool has_simulation = false;  // daemon/sim reads that section
  bool operator==(const Config&) const = default;
};

}  // namespace spark::config
