// What the processes of a job read, as /proc tells it. Nothing here touches a file of the job, so a mount
// that does not answer blocks none of it.
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
  Bytes position = 0;  // of the descriptor; pread() leaves it where it is
};

struct ProcessReads {
  pid_t parent = 0;
  Bytes called = 0;        // returned by read() and its like, from any file, pipe or cache
  Bytes from_storage = 0;  // fetched from storage for it; mapped files count here alone
  std::vector<OpenFile> files;
  std::vector<std::string> mapped;  // paths of the files that it maps
  std::string name;                 // of its program, as the kernel has it
};

// Parses /proc/PID/io; none if a counter is missing.
struct IoCounters {
  Bytes called = 0, from_storage = 0;
};
std::optional<IoCounters> parse_process_io(std::string_view text);

// The program's name from /proc/PID/stat; empty if the text has none.
std::string parse_name(std::string_view stat);

// The parent's number from /proc/PID/stat, whose second field may hold blanks and parentheses.
std::optional<pid_t> parse_parent(std::string_view stat);

// The processes below `first`, which is not one of them. Those that end meanwhile are left out.
std::map<pid_t, ProcessReads> read_processes_below(const SystemRoot& root, pid_t first);

// Microseconds in which some process of the host waited for storage, since boot (/proc/pressure/io). No value
// where the kernel does not count them.
std::optional<std::uint64_t> storage_pressure(const SystemRoot& root);

}  // namespace spark::bench
