// What was measured on: mounts, storage, network cards, and what the host counted. Plain values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"

namespace spark::bench {

struct MountFacts {
  std::string mount_point, source, type;
  std::string options;  // of the mount and of the file system, comma-separated
};

// Where the bytes of a path are counted.
struct OriginSource {
  std::string device;                     // "nvme1n1p1"; empty: no block device
  std::vector<std::string> path_devices;  // native multipath: the hidden devices that do the I/O
  std::string nfs_mount;                  // mount point; empty: no NFS
  std::string nic;                        // that leads to the target; empty: local, or unknown
};

// Bytes read from the storage between two looks.
struct Origin {
  std::optional<Bytes> bytes;  // none: nothing counts them here
  std::string counter;         // "block device nvme1n1", "NFS mount", "network card eth0"
  std::optional<Bytes> nic_bytes;
};
enum class PathKind { Unknown, Local, RemoteBlock, Nas, Memory };
const char* to_string(PathKind kind);
PathKind path_kind_from(std::string_view name);

struct NicFacts {
  std::string name;
  double bytes_per_second = 0;  // link speed; 0: unknown
  unsigned mtu = 0;
  bool operator==(const NicFacts&) const = default;
};

struct StorageFacts {
  PathKind kind = PathKind::Unknown;
  std::string address;                                        // of the target; empty: local
  std::vector<std::string> controllers;                       // "nvme1"
  std::vector<std::pair<std::string, std::string>> settings;  // as sysfs and the mount say
  OriginSource origin;
  NicFacts nic;
};

// A file to measure on, and how much of it holds data.
struct DataFile {
  std::string path;
  Bytes bytes = 0;
};

// Of a local drive, in degrees Celsius.
struct DriveTemperature {
  double celsius = 0;
  double limit = 0;  // from here on it warns and slows down; 0: unknown
  bool is_hot() const { return limit > 0 && celsius >= limit; }
};

// CPU time of everything on the host, kernel threads and interrupts included.
struct CpuUse {
  double seconds = 0;                   // between the two looks
  double busy = 0, kernel_threads = 0;  // CPU seconds
  double idle_share = 1;                // of all cores
  double busiest_core = 0;              // the share of its time that the busiest one was busy
};
// What the host burns when nothing is measured, in CPU seconds a second, and how sure that is.
struct IdleCpu {
  double rate = 0;
  double error = 0;  // standard error of `rate`
};

}  // namespace spark::bench
