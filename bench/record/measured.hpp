// The outcome of one measurement, the same for every method.
#pragma once

#include <cstdint>
#include <optional>

#include "bench/record/facts.hpp"
#include "bench/record/histogram.hpp"

namespace spark::bench {

struct Measured {
  Bytes bytes = 0;
  std::uint64_t ios = 0;               // I/Os, or whole files
  std::optional<std::uint64_t> opens;  // small files on NFS: requests to open a file
  double seconds = 0;                  // of the longest job; without the time between passes over small files
  double cpu_seconds = 0;              // user and system time of fio itself, without kernel threads
  Bins bins;                           // latency of each I/O, or time of each file from open to close
  std::optional<FreeMemory> memory;    // of a loaded model
};
SPARK_MESSAGE(Measured, (bytes, ios, opens, seconds, cpu_seconds, bins, memory));

}  // namespace spark::bench
