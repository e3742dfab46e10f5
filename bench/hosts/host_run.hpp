// The same run on another host, in step with ours cell by cell. The remote program prints "ready 0" once it
// has started and "ready N" before its cell N, and waits for a line on stdin each time. At the end it prints
// "record JSON". At the end of its stdin it cleans up and exits.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/child.hpp"
#include "base/threads.hpp"
#include "bench/hosts/host_command.hpp"
#include "bench/record/record.hpp"

namespace spark::bench {

using HostDeadline = std::chrono::steady_clock::time_point;

class HostRun {
 public:
  // Starts the program. A host that can't be reached is detected by the next wait. Returns an Error only if
  // ssh or srun is missing.
  static Result<HostRun> start(Launcher launcher, const std::string& host,
                               const std::vector<std::string>& command);

  HostRun(HostRun&&) noexcept = default;
  HostRun& operator=(HostRun&&) = delete;
  // Closes its stdin and waits up to 30 s for it to clean up.
  ~HostRun();

  const std::string& host() const { return host_; }

  // Waits until the host has reached that cell. Returns an Error that names the host if its program ended,
  // missed the deadline, or reached another cell.
  Result<> wait_for_cell(unsigned cell, HostDeadline end, const StopFlag& stop);
  void let_go_on();  // if the host is gone, the next wait reports it

  // Waits for a successful end.
  Result<Record> record(HostDeadline end, const StopFlag& stop);

 private:
  HostRun(Launcher launcher, std::string host, Child child)
      : launcher_(launcher), host_(std::move(host)), child_(std::move(child)) {}

  Result<std::string> next_line(HostDeadline end, const StopFlag& stop);
  bool read_some();  // false: end of its output
  Error ended();

  Launcher launcher_;
  std::string host_;
  Child child_;
  std::string out_, err_;
};

// On the remote host: reports that it has reached the cell and waits for permission to continue, on the
// descriptor `in`. False at the end of `in` or if `stop` is set.
bool wait_for_word(int in, std::ostream& out, unsigned cell, const StopFlag& stop);

// On the remote host, at the end of the run.
void send_record(std::ostream& out, const json::object& record);

}  // namespace spark::bench
