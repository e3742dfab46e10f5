// Reads whole files like a data loader: several threads open a file, read it to the end and close it. Every
// call here touches the path and may hang: run it in a child (process.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "bench/record/measured.hpp"

namespace spark::bench {

// An NFS client that holds a file's delegation opens the file without asking the server, and opening the file
// gets it the delegation. A dataset has more files than a client can hold delegations for, so a pass should
// start without any.
enum class Delegations {
  None,      // not NFS
  GiveBack,  // before each pass, by setting the file's unchanged mode; only for files of our own. A client
             // keeps a write delegation then, so the files must be made without one
  Avoid,     // read other files in each pass, and open files only for direct I/O to evict them
};

struct FileReading {
  std::vector<std::string> files;
  std::size_t first = 0;  // index of the first file to read; wraps around at the end of the list
  std::size_t pass = 0;   // files in a pass; the next pass continues after them. 0: all files
  Delegations delegations = Delegations::None;
  bool may_be_cached = true;  // false: Avoid does not even evict a file that this run has not read yet
  unsigned threads = 1;
  Duration at_least{0};    // repeat passes until this time is over; 0: one pass
  Bytes rate = 0;          // limit in bytes per second for all threads together; 0: no limit
  std::uint64_t seed = 0;  // for the order of the files within a pass
  std::atomic<std::uint64_t>* progress = nullptr;  // bytes read so far, shared with another process
  // Counts the requests to open a file that were sent so far; unset, or no value: nothing counts them.
  std::function<std::optional<std::uint64_t>()> opens_sent = {};
};

Result<Measured> read_files(const FileReading& reading);

// Evicts these files' clean pages from the page cache. The kernel may keep pages that other processes use, so
// the bytes from the storage are counted as well.
Result<> evict_from_cache(const std::vector<std::string>& files, Delegations delegations = Delegations::None);

// Creates an incompressible file of each size in the new folder and flushes the files. `rate` is the limit in
// bytes per second; 0: no limit. Unless `delegations` is None, the client gets no delegation of the files.
Result<> make_small_files(const std::string& folder, const std::vector<Bytes>& sizes, Bytes rate,
                          Delegations delegations = Delegations::None);

// The file names that make_small_files() uses.
std::vector<std::string> small_file_names(const std::string& folder, std::uint64_t count);

}  // namespace spark::bench
