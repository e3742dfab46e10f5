// Which files a job reads, how large they are, and in which order it goes through the large ones. Pure.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/demand/process_reads.hpp"
#include "bench/record/demand.hpp"

namespace spark::bench {

class JobFiles {
 public:
  // Files below these folders are the dataset's. With no folder every file counts, except those below the
  // system's own folders (/usr, /etc, /proc, …).
  explicit JobFiles(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  bool is_data(const std::string& path) const;

  // One look at a process that read `called` more bytes since the look before. True if it has a data file
  // open or mapped.
  bool see(const ProcessReads& reads, Bytes called);

  std::uint64_t count() const { return sizes_.size(); }  // of different files that were seen open
  Bytes mean_size() const;                               // 0 for none
  bool has_mapped() const { return has_mapped_; }        // a data file: read() does not see its bytes

  // Unknown with fewer than eight moves seen, or where neither kind is three times as frequent.
  ReadOrder order() const;

 private:
  void note_move(const OpenFile& file, Bytes called);

  std::vector<std::string> folders_;
  std::map<std::string, Bytes> sizes_;
  std::map<std::pair<pid_t, int>, OpenFile> last_;  // large files, by descriptor
  unsigned forward_ = 0, jumps_ = 0;
  bool has_mapped_ = false;
};

}  // namespace spark::bench
