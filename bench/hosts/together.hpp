// Other hosts that measure in step with this one.
#pragma once

#include "bench/hosts/host_run.hpp"

namespace spark::bench {

class Together {
 public:
  // Starts `command` on each host, with `--part N --parts HOSTS`: this host is part 0. An Error names the
  // failed host; the others are ended.
  Result<> start(Launcher launcher, const std::vector<std::string>& hosts,
                 const std::vector<std::string>& command);

  // Waits until all hosts have reached the cell, then lets them measure. Calls `tell` with the name of each
  // host that is still awaited.
  Result<> step(unsigned cell, Duration patience, const StopFlag& stop,
                const std::function<void(const std::string&)>& tell);

  // The records of all hosts, in the order of start().
  Result<std::vector<Record>> records(Duration patience, const StopFlag& stop);

 private:
  std::vector<HostRun> runs_;
};

}  // namespace spark::bench
