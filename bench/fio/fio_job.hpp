// fio's command lines. Everything that decides a number is named in them; nothing is left to fio's defaults.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "bench/record/facts.hpp"
#include "bench/record/scenario.hpp"

namespace spark::bench {

// What one of fio's threads works on: whole files, one after another, or a part of one file.
struct Stream {
  std::vector<std::string> files;
  Bytes offset = 0, bytes = 0;  // bytes 0: the whole of each file
};

// At most `count` streams over the files, each its own part: files are dealt out, or split at multiples of
// `block` when there are fewer than streams. Files shorter than a block are left out; empty if all are.
std::vector<Stream> deal_streams(const std::vector<DataFile>& files, unsigned count, Bytes block);

// Lets each stream that reads one file begin at another place in each round, so that what a target remembers
// of the round before is no help: up to half of its part is left out at the beginning.
void start_elsewhere(std::vector<Stream>& streams, const std::vector<DataFile>& files, unsigned round,
                     Bytes block);

struct FioSetup {
  std::string program = "fio";
  std::string engine = "io_uring";
  std::string aux_folder;  // where fio may leave files of its own
};

// How long, and how fast at most: bytes per second of all streams together, 0 for no limit. Through the page
// cache no block is read twice, so such a cell may end earlier.
struct CellLimits {
  std::chrono::seconds runtime{};
  double rate = 0;
};
std::vector<std::string> cell_command(const FioSetup& setup, const Scenario& scenario,
                                      const std::vector<Stream>& streams, const CellLimits& limits);

// Writes the files once, so that every block exists and can't be compressed. All of one size. `rate`: bytes
// per second at most; 0: no limit.
std::vector<std::string> layout_command(const FioSetup& setup, const std::vector<DataFile>& files,
                                        Bytes rate);

// The command as a job file: `fio FILE` does the same again.
std::string job_file(const std::vector<std::string>& command);

// Reads 4 KiB of `file` with the set-up's engine: shows whether this fio and this kernel have it.
std::vector<std::string> probe_command(const FioSetup& setup, const std::string& file);

// The path as fio's filename= takes it, or no value: fio cuts names at '#', ';' and '\' whatever is done.
std::optional<std::string> fio_filename(const std::string& path);

// As typed into a shell, for records and people.
std::string shell_line(const std::vector<std::string>& command);

}  // namespace spark::bench
