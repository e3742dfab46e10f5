// Determines the space that deleting a copy would free, and obstacles, before anything is deleted.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {

struct Deletion {
  Bytes freed = 0;       // on the disk; without files that have names elsewhere
  std::string obstacle;  // "its file a/b is open"; empty means none
  bool passes = false;   // the obstacle is temporary: a file is open or mapped
};

// For all the trees together; ends at the first obstacle. Open files are detected with a kernel lease (fcntl
// F_SETLEASE): exact, for every process and for mappings, at a few microseconds per file. Searching /proc
// would take that time for every process. If the file system has no leases, a file counts as not open.
Result<Deletion> look_before_deleting(const std::vector<Tree>& trees, const StopFlag& stop);
// The same for trees that may be gone already: then they are none. One that can't be opened is an error, as a
// program may have a file of it open.
Result<Deletion> look_before_deleting(const std::vector<std::filesystem::path>& roots, const StopFlag& stop);

}  // namespace spark::staging
