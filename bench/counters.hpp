// What the host itself counts while a cell is measured: CPU time of everything, and bytes that really came
// from the storage. Only files that can't block are read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/units.hpp"

namespace spark::bench {

// Seconds since boot, kernel threads and interrupts included; steal and waiting for I/O are not busy.
struct CpuCounters {
  double busy = 0, idle = 0;
  double kernel_threads = 0;  // of `busy`
  std::vector<double> core_busy, core_idle;
};
CpuCounters read_cpu(const SystemRoot& root);

struct CpuUse {
  double seconds = 0;                   // between the two looks
  double busy = 0, kernel_threads = 0;  // CPU seconds
  double idle_share = 1;                // of all cores
  double busiest_core = 0;              // the share of its time that the busiest one was busy
};
CpuUse cpu_between(const CpuCounters& before, const CpuCounters& after, double seconds);

// What the host burns when nothing is measured, in CPU seconds a second, and how sure that is.
struct IdleCpu {
  double rate = 0;
  double error = 0;  // standard error of `rate`
};
IdleCpu idle_cpu(const std::vector<double>& rates);

// Where the bytes of a path are counted.
struct OriginSource {
  std::string device;                     // "nvme1n1p1"; empty: no block device
  std::vector<std::string> path_devices;  // native multipath: the hidden devices that do the I/O
  std::string nfs_mount;                  // mount point; empty: no NFS
  std::string nic;                        // that leads to the target; empty: local, or unknown
};

struct OriginCounters {
  std::optional<Bytes> device, path_devices, nfs, nic;  // read since boot, or since the mount
};
OriginCounters read_origin(const SystemRoot& root, const OriginSource& source);

// Bytes read from the storage between two looks.
struct Origin {
  std::optional<Bytes> bytes;  // none: nothing counts them here
  std::string counter;         // "block device nvme1n1", "NFS mount", "network card eth0"
  std::optional<Bytes> nic_bytes;
};
Origin origin_between(const OriginSource& source, const OriginCounters& before, const OriginCounters& after);

}  // namespace spark::bench
