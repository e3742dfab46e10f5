// Child processes: started with only the descriptors that they need, dead when their parent is, never a
// shell.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"

namespace spark {

struct ChildOptions {
  bool pipe_stdin = false;   // false: the parent's
  bool pipe_stderr = false;  // the same
  std::string program;       // the file to execute; empty: argv[0]
  int inherited = -1;        // a descriptor of the caller that the child gets as kInherited; -1: none
};
inline constexpr int kInherited = 3;

// A running child. Pipes are the parent's ends, blocking, close-on-exec. The owner reaps it (wait_for or
// waitid on pidfd).
struct Child {
  pid_t pid = -1;
  UniqueFd pidfd;
  UniqueFd in, out, err;
};

// argv[0] is looked up in PATH. The child gets SIGKILL when the calling thread ends, and is in a process
// group of its own: a ^C at the terminal reaches the parent alone.
Result<Child> spawn(const std::vector<std::string>& argv, const ChildOptions& options = {});

struct ChildOutput {
  int exit_status = 0;  // 128 + signal number if a signal ended it
  std::string out, err;
};

// Runs to the end with `input` on stdin, capturing both outputs. Past the deadline it is killed: TimedOut.
Result<ChildOutput> run_child(const std::vector<std::string>& argv, std::chrono::milliseconds deadline,
                              const std::string& input = {});

// Appends bytes from a pipe, waiting for the first one. At end of file it closes the descriptor: false.
bool drain(UniqueFd& pipe, std::string& into);

// A child that can't die (D state) is left behind after a second; init gets it when this process ends.
void kill_and_reap(const Child& child);

// None on failure, with the reason in errno.
UniqueFd pidfd_of(pid_t pid);

// The exit status of a reaped waitid/waitpid status.
int exit_status_of(int wait_status);

}  // namespace spark
