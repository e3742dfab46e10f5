// Reads whole files as a data loader does: open, read to the end, close, by several threads. Every call here
// touches the path and may hang: run it apart (process.hpp).
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "bench/record/histogram.hpp"

namespace spark::bench {

// An NFS client that holds a file's delegation opens it without asking the server, and gets it by opening the
// file. A dataset has more files than a client holds delegations, so a pass should find none.
enum class Delegations {
  None,      // not NFS
  GiveBack,  // before each pass: by setting the mode that the file has, which is only for files of our own
  Avoid,     // files are not opened before they are read for the first time: nothing of them should be cached
};

struct FileReading {
  std::vector<std::string> files;
  std::size_t first = 0;  // of the files to read; past their number they come again
  std::size_t pass = 0;   // files in a pass; the next has the files after them. 0: all
  Delegations delegations = Delegations::None;
  unsigned threads = 1;
  bool cold = true;        // the page cache is emptied of the files before each pass
  Duration at_least{0};    // passes are repeated until they took this long; 0: one pass
  Bytes rate = 0;          // bytes per second at most, all threads together; 0: no limit
  std::uint64_t seed = 0;  // of the order of the files in a pass
  std::atomic<std::uint64_t>* progress = nullptr;  // bytes read so far, for another process to see
};

struct FilesRead {
  Bytes bytes = 0;
  std::uint64_t files = 0;
  double seconds = 0;  // of reading alone
  Bins bins;           // each file's time from open to close
};

Result<FilesRead> read_files(const FileReading& reading);

// Empties the page cache of what is written in these files. The kernel may keep pages that others use: what
// came from the storage is counted, not believed.
Result<> evict_from_cache(const std::vector<std::string>& files, bool give_back_delegations = false);

// Makes a file of each size, which can't be compressed, in the new folder, and flushes them. `rate`: bytes
// per second at most; 0: no limit.
Result<> make_small_files(const std::string& folder, const std::vector<Bytes>& sizes, Bytes rate);

// The names that make_small_files gives.
std::vector<std::string> small_file_names(const std::string& folder, std::uint64_t count);

}  // namespace spark::bench
