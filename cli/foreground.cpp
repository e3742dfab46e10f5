#include "cli/foreground.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/child.hpp"
#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::cli {
namespace {

constexpr int kPassedOn[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

// Blocks the forwarded signals, and SIGCHLD, during its lifetime: sigwaitinfo receives them.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGCHLD);
    for (const int number : kPassedOn) sigaddset(&set_, number);
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~BlockedSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  const sigset_t& set() const { return set_; }
  const sigset_t& before() const { return before_; }

 private:
  sigset_t set_, before_;
};

[[noreturn]] void become(char* const* argv, pid_t parent, const sigset_t& mask, int report) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  if (::getppid() == parent) ::execvp(argv[0], argv);
  const int number = errno;
  [[maybe_unused]] const ssize_t told = ::write(report, &number, sizeof number);
  ::_exit(127);
}

int wait_and_pass_on(pid_t child, const sigset_t& signals) {
  for (;;) {
    int status = 0;
    const pid_t reaped = ::waitpid(child, &status, WNOHANG);
    if (reaped == child) return exit_status_of(status);
    siginfo_t signal{};
    const int number = ::sigwaitinfo(&signals, &signal);
    // The terminal sends ^C and a hang-up to the whole process group: the child has had those.
    const bool from_a_process = signal.si_code <= 0;
    if (number > 0 && number != SIGCHLD && from_a_process) ::kill(child, number);
  }
}

}  // namespace

Result<int> run_in_foreground(const std::vector<std::string>& command, const Environment& more) {
  for (const auto& [name, value] : more) {
    if (::setenv(name.c_str(), value.c_str(), 1) != 0) return fail_errno(errno, "setting " + printable(name));
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "making a pipe");
  UniqueFd report_end(ends[0]), child_end(ends[1]);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);

  ::signal(SIGCHLD, SIG_DFL);  // an inherited SIG_IGN would take the child's status from us
  const BlockedSignals blocked;
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0) return fail_errno(errno, "starting " + printable(command.front()));
  if (child == 0) become(argv.data(), parent, blocked.before(), child_end.get());
  child_end.reset();
  int number = 0;
  if (::read(report_end.get(), &number, sizeof number) == sizeof number) {
    ::waitpid(child, nullptr, 0);
    return fail_errno(number, "starting " + printable(command.front()));
  }
  return wait_and_pass_on(child, blocked.set());
}

}  // namespace spark::cli
