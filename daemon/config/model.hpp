// The configuration in force, as plain values. Created by parse.hpp, read by every component, compared on
// reload.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "nvmetcp/types.hpp"

namespace spark::config {

struct Target {
  std::string name;
  std::vector<nvmetcp::Portal> portals;  // at least one
  nvmetcp::ConnectOptions options;       // for all connections to it
  bool operator==(const Target&) const = default;
};

enum class Access { ReadOnly, Exclusive };
enum class Fence { Auto, Reservation, Mmp, None };

// Used instead of a namespace's number (1 or more): any namespace of the subsystem that is mounted there.
inline constexpr std::uint32_t kAnyNamespace = 0;

struct NvmeSource {
  std::string target;  // key of Config::targets
  std::string subsystem;
  std::uint32_t nsid = 1;
  std::string filesystem_type, filesystem_uuid;  // empty means not pinned in the config; UUID in lower case
  bool operator==(const NvmeSource&) const = default;
};

struct NfsSource {
  std::string host, path;  // "192.168.0.98" or "[fd00::1]", "/data/shared": the source is host + ":" + path

  bool operator==(const NfsSource&) const = default;
};

// Handling of a mount that has lost its device while programs have its files open: replaced, so that those
// files return errors and new opens work; or held until the files are closed.
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

// The records of a volume in the state folder are "NAME.json" and, for each of these, NAME, its end and
// ".json".
inline constexpr std::array<std::string_view, 8> kVolumeRecords{
    ".history", ".intent", ".leaving", ".addresses", ".held", ".to-write", ".late-writes", ".renamed"};

// A size in bytes or as a percentage of the file system.
struct Amount {
  Bytes bytes = 0;
  double percent = 0;  // > 0: used instead of bytes
  bool operator==(const Amount&) const = default;
};

// Settings for copies into the cache; 0 means derived from the CPUs.
struct EngineSettings {
  unsigned threads = 0;  // for small files
  unsigned depth = 0;    // concurrent requests for large files
  Bytes chunk = 0;       // bytes of one such request
  bool operator==(const EngineSettings&) const = default;
};

// What becomes of copies in the page cache. Drop: they leave it once no program reads them. Auto: the same
// where the GPU shares the host's memory.
enum class PageCache { Auto, Drop, Leave };

struct CacheSettings {
  std::filesystem::path path = "/var/lib/spark-stage/cache";
  Amount capacity;  // both 0: the whole file system except keep_free
  Amount keep_free{0, 5};
  std::optional<std::chrono::seconds> scrub = std::chrono::hours(30 * 24);  // none means off
  bool yield = true;  // copies reduce their load while a dataset is leased
  PageCache page_cache = PageCache::Auto;
  EngineSettings engine;
  std::vector<std::string> options;  // of the mount that jobs see: suid, dev
  bool operator==(const CacheSettings&) const = default;
};

// Handling of symlinks that lead out of a dataset: see staging::OutsideLinks.
enum class Links { Keep, Copy, Refuse };

// What is checked of a model: `Published`: its publisher's digests, where there are any, and its structure.
// Complete: also that every file of the revision is there. Structure: headers, indexes and numbered parts.
enum class ModelCheck { Published, Complete, Structure, None };

// A model that a dataset's folder has, perhaps beside others: see staging::ModelOptions.
struct ModelSettings {
  std::string name;                    // "ORG/NAME", or "NAME:TAG" of ollama
  std::string revision{};              // a ref or a commit; empty means main
  std::vector<std::string> include{};  // patterns of its files; empty means all
  ModelCheck check = ModelCheck::Published;
  std::string expect{};  // "sha256:HEX" of all its files; empty means not pinned
  bool operator==(const ModelSettings&) const = default;
};

struct Dataset {
  std::string name;
  std::string volume;  // empty means that `path` is an absolute path of any folder
  std::string path;    // "." is the whole volume; empty means that other hosts of the fleet have it
  std::vector<std::string> exclude;
  Links links = Links::Keep;
  std::optional<ModelSettings> model;   // without it, it is any folder
  bool offline = false;                 // the newest copy serves while the source is away
  bool peers = false;                   // a plain folder is the same on all hosts of the fleet
  bool adopt = false;                   // a plain folder is offered to the fleet without a copy of it
  std::string env;                      // an additional variable that `run` sets; empty means none
  std::vector<std::string> namespaces;  // Kubernetes namespaces of the pods that may use it; empty means all
  bool operator==(const Dataset&) const = default;
};

// When a checkpoint in an output's folder is complete: see staging::Completeness.
enum class Complete { OnRequest, Rename, Dcp, HuggingFace, DeepSpeed, Marker };

// Files that a job writes on this host and that belong on a volume.
struct Output {
  std::string name;
  std::filesystem::path path;  // its entries are the checkpoints
  std::string volume, to;      // the destination; `to` is relative to the volume
  Complete complete = Complete::OnRequest;
  std::string marker;            // for Complete::Marker: a file's name
  std::uint32_t keep = 0;        // newest checkpoints on the volume; 0 means all
  std::uint32_t keep_local = 0;  // newest checkpoints on this host; 0 means all
  // Checkpoints with a multiple of it as number are all sent and kept; 0 means none.
  std::uint32_t keep_every = 0;
  // Hosts that each write a shard of a checkpoint; 0 means that this host writes all of it.
  std::uint32_t nodes = 0;
  // Kubernetes namespaces of the pods that may write there; empty means none.
  std::vector<std::string> namespaces;
  bool operator==(const Output&) const = default;
};

struct MetricsSettings {
  std::optional<nvmetcp::Portal> listen;  // an IP address and a port; none means only the API's socket
  bool operator==(const MetricsSettings&) const = default;
};

// The hosts that exchange staged data. Unset means no exchange.
struct FleetSettings {
  std::vector<nvmetcp::Portal> listen;  // IP addresses and ports
  std::filesystem::path key_file;
  // At least one address each; may include this host.
  std::map<std::string, std::vector<nvmetcp::Portal>> peers;
  std::optional<nvmetcp::Portal> dns;  // a name that resolves to the addresses of all hosts, and their port
  Amount upload{0, 50};  // bytes per second, or a percentage of the link, while a dataset is leased here
  bool operator==(const FleetSettings&) const = default;
};

struct Config {
  std::filesystem::path file;  // path of the configuration file
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

// The file's words for each choice, in the order of its enumerators. The first one is the default.
template <class Choice>
inline constexpr std::array<const char*, 0> kWords{};
template <>
inline constexpr std::array<const char*, 2> kWords<Access>{"read-only", "exclusive"};
template <>
inline constexpr std::array<const char*, 4> kWords<Fence>{"auto", "reservation", "mmp", "none"};
template <>
inline constexpr std::array<const char*, 2> kWords<OnLoss>{"remount", "hold"};
template <>
inline constexpr std::array<const char*, 3> kWords<PageCache>{"auto", "drop", "leave"};
template <>
inline constexpr std::array<const char*, 3> kWords<Links>{"keep", "copy", "refuse"};
template <>
inline constexpr std::array<const char*, 4> kWords<ModelCheck>{"published", "complete", "structure", "none"};
// "marker" is followed by the file's name.
template <>
inline constexpr std::array<const char*, 6> kWords<Complete>{"",   "rename",    "dcp",
                                                             "hf", "deepspeed", "marker"};

template <class Choice>
requires(!kWords<Choice>.empty()) constexpr const char* to_string(Choice choice) {
  return kWords<Choice>[static_cast<std::size_t>(choice)];
}

}  // namespace spark::config
