// Builds fio's command lines. Every option that affects a result is given explicitly; none is left to fio's
// defaults.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "bench/record/facts.hpp"
#include "bench/record/host_part.hpp"
#include "bench/record/scenario.hpp"

namespace spark::bench {

// The data that one of fio's threads reads or writes: several whole files in sequence, or a part of one file.
struct Stream {
  std::vector<std::string> files;
  Bytes offset = 0, bytes = 0;  // bytes 0: all of each file
};

// Splits the files among at most `count` streams without overlap: whole files if there are enough, else parts
// at multiples of `block`. Files shorter than a block are left out; empty if all are.
std::vector<Stream> deal_streams(const std::vector<DataFile>& files, unsigned count, Bytes block);

// Starts each single-file stream at a different offset in each round, so that the target's cache from an
// earlier round is of no use, and on each host at a different offset in the same round. Skips up to half of
// the stream's part at its beginning.
void start_elsewhere(std::vector<Stream>& streams, const std::vector<DataFile>& files, unsigned round,
                     Bytes block, const HostPart& part);

struct FioSetup {
  std::string program = "fio";
  std::string engine = "io_uring";
  std::string aux_folder;  // for fio's own temporary files
};

// The duration, and the rate limit in bytes per second for all streams together (0: no limit). Through the
// page cache no block is read twice, so such a cell may end earlier.
struct CellLimits {
  std::chrono::seconds runtime{};
  double rate = 0;
};
std::vector<std::string> cell_command(const FioSetup& setup, const Scenario& scenario,
                                      const std::vector<Stream>& streams, const CellLimits& limits);

// Writes the files once, so that every block exists and is incompressible. All have the same size. `rate` is
// the limit in bytes per second; 0: no limit.
std::vector<std::string> layout_command(const FioSetup& setup, const std::vector<DataFile>& files,
                                        Bytes rate);

// The command as a job file; `fio FILE` repeats the measurement.
std::string job_file(const std::vector<std::string>& command);

// Reads 4 KiB of `file` with the configured engine, to check that this fio and this kernel support it.
std::vector<std::string> probe_command(const FioSetup& setup, const std::string& file);

// The path as fio's filename= accepts it. No value if fio can't: it cuts names at '#', ';' and '\' even when
// escaped.
std::optional<std::string> fio_filename(const std::string& path);

// As typed into a shell, for records and users.
std::string shell_line(const std::vector<std::string>& command);

}  // namespace spark::bench
