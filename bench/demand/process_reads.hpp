// Collects the reads of a job's processes from /proc. Nothing here touches a file of the job, so a mount that
// does not answer cannot block it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/units.hpp"

namespace spark::bench {

// A regular file that a process has open.
struct OpenFile {
  pid_t pid = 0;
  int fd = 0;
  std::string path;
  Bytes size = 0;
  Bytes position = 0;      // of the descriptor; pread() does not move it
  bool is_direct = false;  // its reads bypass the page cache
};

// A mapped file without code.
struct MappedFile {
  std::string path;
  Bytes bytes = 0;  // of all its mappings
};

struct ProcessReads {
  pid_t parent = 0;
  Bytes called = 0;        // returned by read() and similar calls, from any file, pipe or cache
  Bytes from_storage = 0;  // fetched from storage for the process; reads of mapped files appear only here
  std::vector<OpenFile> files;
  std::vector<MappedFile> mapped;
  std::string name;              // of its program, as the kernel reports it
  bool is_asynchronous = false;  // uses io_uring or libaio, whose reads `called` lacks
  bool has_ring = false;         // an open descriptor of io_uring, used or not
};

// Parses /proc/PID/io; no value if a counter is missing.
struct IoCounters {
  Bytes called = 0, from_storage = 0;
};
std::optional<IoCounters> parse_process_io(std::string_view text);

// All descendants of `first`, without `first` itself. Processes that end during the scan are left out.
std::map<pid_t, ProcessReads> read_processes_below(const SystemRoot& root, pid_t first);

// Microseconds since boot during which some process of this host waited for storage (/proc/pressure/io). No
// value if the kernel does not count them.
std::optional<std::uint64_t> storage_pressure(const SystemRoot& root);

}  // namespace spark::bench
