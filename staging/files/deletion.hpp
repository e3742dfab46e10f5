// What deleting a copy would give back, and what stands in the way, found out before anything is deleted.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {

struct Deletion {
  Bytes freed = 0;       // on the disk; without files that have names elsewhere
  std::string obstacle;  // "its file a/b is open"; empty: none
  bool passes = false;   // the obstacle goes away: a file that is open or mapped
};

// Of all the trees together; ends at the first obstacle. Whether a file is open is asked of the kernel with
// a lease (fcntl F_SETLEASE): exact, for every process and for mappings, at some microseconds a file, where
// searching /proc would take as long for every process there is. Where the file system has no leases a file
// counts as not open.
Result<Deletion> look_before_deleting(const std::vector<Tree>& trees, const StopFlag& stop);

}  // namespace spark::staging
