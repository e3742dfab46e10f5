// Facts about the measured system: mounts, storage, network cards, and the host's counters. Plain values.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/described.hpp"
#include "base/units.hpp"

namespace spark::bench {

struct MountFacts {
  std::string mount_point, source, type;
  std::string options;  // of the mount and of the file system, comma-separated
};
SPARK_MESSAGE(MountFacts, (mount_point, source, type, options));

// The counter of a path's bytes.
struct OriginSource {
  std::string device;                     // "nvme1n1p1"; empty: no block device
  std::vector<std::string> path_devices;  // native multipath: the hidden devices that do the I/O; a file
                                          // system of several drives: all of them, `device` among them
  std::string nfs_mount;                  // mount point; empty: no NFS
  std::string nic;                        // on the route to the target; empty: local, or unknown
  std::vector<std::string> more_nics;     // of further paths to it
};

// Bytes read from the storage between two samples.
struct Origin {
  std::optional<Bytes> bytes;  // no value: no counter exists here
  std::string counter;         // "block device nvme1n1", "NFS mount", "network card eth0"
  std::optional<Bytes> nic_bytes;
};
SPARK_MESSAGE(Origin, (bytes, counter, nic_bytes));
enum class PathKind { Unknown, Local, RemoteBlock, Nas, Memory };
const char* to_string(PathKind kind);
// Its data crosses a network, and other hosts may share it.
constexpr bool is_remote(PathKind kind) {
  return kind == PathKind::RemoteBlock || kind == PathKind::Nas;
}

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
  std::vector<std::pair<std::string, std::string>> settings;  // as reported by sysfs and the mount
  OriginSource origin;
  NicFacts nic;
};

// A file to measure on, and the size of its data.
struct DataFile {
  std::string path;
  Bytes bytes = 0;
};
SPARK_MESSAGE(DataFile, (path, bytes));

// The host's free memory around the loading of a model, while the tensors' memory is held.
struct FreeMemory {
  Bytes before = 0, after = 0;
  std::optional<Bytes> cached;  // of the model's files, in the page cache after that; no value: not known
  Bytes taken() const { return before > after ? before - after : 0; }
};
SPARK_MESSAGE(FreeMemory, (before, after, cached));

// Of a local drive, in degrees Celsius.
struct DriveTemperature {
  double celsius = 0;
  double limit = 0;  // warning threshold, above which the drive slows down; 0: unknown
  bool is_hot() const { return limit > 0 && celsius >= limit; }
};

// CPU time of the whole host, including kernel threads and interrupts.
struct CpuUse {
  double seconds = 0;                       // between the two samples
  double busy_s = 0, kernel_threads_s = 0;  // CPU seconds
  double idle_share = 1;                    // of all cores
  double busiest_core = 0;                  // the share of its time that the busiest core was busy
};
SPARK_MESSAGE(CpuUse, (seconds, busy_s, kernel_threads_s, idle_share, busiest_core));

// The host's CPU use without a measurement, in CPU seconds per second, with its error.
struct IdleCpu {
  double cpu_s_per_s = 0;
  double error = 0;  // standard error of that
};
SPARK_MESSAGE(IdleCpu, (cpu_s_per_s, error));

}  // namespace spark::bench
