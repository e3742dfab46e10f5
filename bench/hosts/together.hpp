// Several other hosts that measure in step with this one.
#pragma once

#include "bench/hosts/host_run.hpp"

namespace spark::bench {

class Together {
 public:
  // Starts `command` on each. An Error names the host; the others are ended.
  Result<> start(Launcher launcher, const std::vector<std::string>& hosts,
                 const std::vector<std::string>& command);

  // Waits until all have reached the cell, then lets them measure. `tell` is called with the name of each
  // that is waited for.
  Result<> step(unsigned cell, Duration patience, const StopFlag& stop,
                const std::function<void(const std::string&)>& tell);

  // Of each, in the order of start().
  Result<std::vector<Record>> records(Duration patience, const StopFlag& stop);

 private:
  std::vector<HostRun> runs_;
};

}  // namespace spark::bench
