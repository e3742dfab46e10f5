// What the host itself counts while a cell is measured: CPU time of everything, and bytes that really came
// from the storage. Only files that can't block are read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/units.hpp"
#include "bench/record/facts.hpp"

namespace spark::bench {

// Seconds since boot, kernel threads and interrupts included; steal and waiting for I/O are not busy.
struct CpuCounters {
  double busy = 0, idle = 0;
  double kernel_threads = 0;  // of `busy`
  std::vector<double> core_busy, core_idle;
};
CpuCounters read_cpu(const SystemRoot& root);

CpuUse cpu_between(const CpuCounters& before, const CpuCounters& after, double seconds);

IdleCpu idle_cpu(const std::vector<double>& rates);

struct OriginCounters {
  std::optional<Bytes> device, path_devices, nfs, nic;  // read since boot, or since the mount
};
OriginCounters read_origin(const SystemRoot& root, const OriginSource& source);

Origin origin_between(const OriginSource& source, const OriginCounters& before, const OriginCounters& after);

}  // namespace spark::bench
