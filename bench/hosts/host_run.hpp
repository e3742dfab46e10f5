// The same run on another host, cell by cell in step with ours. Its program says "ready 0" once it has
// begun and "ready N" before its cell N, and waits for a line on stdin each time. It ends with "record JSON".
// When its stdin ends it tidies up and ends.
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
  // Starts the program; whether the host can be reached is seen later. An Error only where ssh or srun is
  // missing.
  static Result<HostRun> start(Launcher launcher, const std::string& host,
                               const std::vector<std::string>& command);

  HostRun(HostRun&&) noexcept = default;
  HostRun& operator=(HostRun&&) = delete;
  // Ends its stdin and waits up to half a minute for it to tidy up.
  ~HostRun();

  const std::string& host() const { return host_; }

  // Until it has reached that cell. Its end, its silence past the deadline, or another cell is an Error that
  // names it.
  Result<> wait_for_cell(unsigned cell, HostDeadline end, const StopFlag& stop);
  void let_go_on();  // that it is gone shows at the next wait

  // Until it has ended well.
  Result<Record> record(HostDeadline end, const StopFlag& stop);

 private:
  HostRun(Launcher launcher, std::string host, Child child)
      : launcher_(launcher), host_(std::move(host)), child_(std::move(child)) {}

  Result<std::string> next_line(HostDeadline end, const StopFlag& stop);
  bool read_some();  // false: its output has ended
  Error ended();

  Launcher launcher_;
  std::string host_;
  Child child_;
  std::string out_, err_;
};

// On the other host: says that it has reached the cell and waits for the word to go on, on the descriptor
// `in`. False where that has ended or `stop` is set.
bool wait_for_word(int in, std::ostream& out, unsigned cell, const StopFlag& stop);

// On the other host, at its end.
void send_record(std::ostream& out, const json::object& record);

}  // namespace spark::bench
