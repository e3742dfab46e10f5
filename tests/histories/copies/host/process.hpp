// A process that does nothing, and lives until the history ends it: the holder of a lease, the daemon itself,
// or a program that has the catalog locked.
#pragma once

#include <sys/types.h>

#include <functional>

namespace spark::histories::copies {

class Process {
 public:
  // `begin` is done in it before the constructor returns.
  explicit Process(const std::function<void()>& begin = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

}  // namespace spark::histories::copies
