// Identifies the files that a job reads, their sizes, and the access order within large files. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/demand/process_reads.hpp"
#include "bench/record/demand.hpp"

namespace spark::bench {

class JobFiles {
 public:
  // Only files below these folders count as the dataset. Without folders every file counts, except those
  // below the system's own folders (/usr, /etc, /proc, …).
  explicit JobFiles(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  bool is_data(const std::string& path) const;

  // Records one sample of a process that read `called` more bytes since the previous sample. Returns true if
  // the process has a data file open or mapped.
  bool see(const ProcessReads& reads, Bytes called);

  std::uint64_t count() const { return sizes_.size(); }  // distinct files seen open
  Bytes mean_size() const;                               // 0 if no file was seen
  Bytes mapped_bytes() const;                            // of data files; read() counters lack their reads
  bool is_asynchronous() const { return is_asynchronous_; }  // a reader of data, see ProcessReads
  // Whether the page cache may give it data, as it does unless all of its files were opened with O_DIRECT.
  bool is_asynchronous_cached() const { return is_asynchronous_ && (is_buffered_ || !is_direct_); }
  const std::set<std::string>& used_folders() const { return used_folders_; }  // those with a data file seen

  // Unknown if fewer than eight moves were seen, or if neither kind is three times as frequent as the other.
  ReadOrder order() const;

 private:
  void note_folder(const std::string& path);
  void note_move(const OpenFile& file, Bytes called);

  std::vector<std::string> folders_;
  std::set<std::string> used_folders_;
  std::map<std::string, Bytes> sizes_;
  std::map<std::pair<pid_t, int>, OpenFile> last_;  // large files by descriptor
  unsigned forward_ = 0, jumps_ = 0;
  std::map<std::string, Bytes> mapped_;
  bool is_asynchronous_ = false;
  bool is_direct_ = false, is_buffered_ = false;  // files of asynchronous readers
};

}  // namespace spark::bench
