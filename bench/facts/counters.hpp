// The host's counters around a cell: CPU time of all processes, and bytes fetched from the storage. Reads
// only files that can't block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/units.hpp"
#include "bench/record/facts.hpp"

namespace spark::bench {

// Seconds since boot, including kernel threads and interrupts. Steal and I/O wait are not counted as busy.
struct CpuCounters {
  double busy = 0, idle = 0;
  double kernel_threads = 0;  // part of `busy`
  std::vector<double> core_busy, core_idle;
};
CpuCounters read_cpu(const SystemRoot& root);

CpuUse cpu_between(const CpuCounters& before, const CpuCounters& after, double seconds);

IdleCpu idle_cpu(const std::vector<double>& rates);

struct OriginCounters {
  std::optional<Bytes> device, path_devices, nfs, nic;  // read since boot, or since the mount
};
OriginCounters read_origin(const SystemRoot& root, const OriginSource& source);

// Requests to open a file that the NFS client has sent for the mount; no value for NFS 3, which has none.
std::optional<std::uint64_t> nfs_opens(const SystemRoot& root, const std::string& mount_point);

Origin origin_between(const OriginSource& source, const OriginCounters& before, const OriginCounters& after);

}  // namespace spark::bench
