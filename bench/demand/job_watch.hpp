// What a running job consumes, from repeated looks at its processes. Pure.
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
  Estimate rate;                    // bytes per second, from the first read of data to the last
  Bytes bytes = 0;                  // in that time
  double seconds = 0;               // of it
  double before = 0;                // seconds until the first read of data
  bool counted_at_storage = false;  // mapped files: only what came from the storage could be counted
  std::uint64_t files = 0;          // different ones seen
  Bytes mean_file = 0;
  ReadOrder order = ReadOrder::Unknown;
};

class JobWatch {
 public:
  explicit JobWatch(std::vector<std::string> folders) : files_(std::move(folders)) {}

  // At `seconds` since the start. Processes that ended since the look before are told by their absence: the
  // kernel then adds what they read to their parent's number.
  void look(double seconds, const std::map<pid_t, ProcessReads>& processes);

  // Invalid where no data was read, or for too short a time to say.
  Result<JobReads> result() const;

 private:
  struct Process {
    ProcessReads last;
    bool is_reader = false;
    Bytes inherited_called = 0, inherited_storage = 0;  // at this look, from children that ended
    Bytes unclaimed_called = 0, unclaimed_storage = 0;  // since the first read of data, while not a reader
  };
  struct Point {
    double seconds;
    Bytes called, from_storage;
  };
  void recognise_workers();
  void take_over_ended(const std::map<pid_t, ProcessReads>& processes);

  JobFiles files_;
  std::map<pid_t, Process> processes_;
  Bytes called_ = 0, from_storage_ = 0;  // by processes that read data, since they were seen to
  bool has_reader_ = false;
  std::set<std::pair<pid_t, std::string>> readers_;  // parent and name of those that were seen to read data
  std::vector<Point> points_;
};

}  // namespace spark::bench
