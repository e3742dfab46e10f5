// Measures the data rate of a running job by sampling its processes. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "bench/demand/job_files.hpp"
#include "bench/record/statistics.hpp"

namespace spark::bench {

struct JobReads {
  Estimate rate;       // bytes per second, from the first read of data to the last
  Bytes bytes = 0;     // during that interval
  double seconds = 0;  // length of that interval
  double before = 0;   // seconds until the first read of data
  // It maps files or uses io_uring, whose reads are counted by no call: only the bytes from storage could be
  // counted, or those of its calls, whichever are more.
  bool counted_at_storage = false, may_lack_reads = false;
  std::uint64_t files = 0;  // distinct files seen
  Bytes mean_file = 0;
  ReadOrder order = ReadOrder::Unknown;
  std::vector<std::string> folders;  // of the given ones, those with a file that the job had open or mapped
};

class JobWatch {
 public:
  explicit JobWatch(std::vector<std::string> folders) : files_(std::move(folders)) {}

  // `seconds` is the time since the start. A process missing from this sample has ended; the kernel then adds
  // its reads to its parent's counters.
  void look(double seconds, const std::map<pid_t, ProcessReads>& processes);

  // Invalid if no data was read, or if the interval was too short.
  Result<JobReads> result() const;

 private:
  struct Process {
    ProcessReads last;
    bool is_reader = false;
    Bytes inherited_called = 0, inherited_storage = 0;  // in this sample, from children that ended
    Bytes unclaimed_called = 0, unclaimed_storage = 0;  // since the first read of data, before the process
                                                        // was recognised as a reader
  };
  struct Point {
    double seconds;
    Bytes called, from_storage;
  };
  void recognise_workers();
  void take_over_ended(const std::map<pid_t, ProcessReads>& processes);

  JobFiles files_;
  std::map<pid_t, Process> processes_;
  Bytes called_ = 0, from_storage_ = 0;  // by recognised readers, including their bytes before recognition
  bool has_reader_ = false;
  std::set<std::pair<pid_t, std::string>> readers_;  // parent and name of each process that was seen to read
                                                     // data
  std::vector<Point> points_;
};

}  // namespace spark::bench
