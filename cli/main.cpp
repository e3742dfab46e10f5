// spark-stage: builds the real parts, runs one verb.
#include <malloc.h>
#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "cli/foreground.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/view/terminal.hpp"
#include "nvmetcp/connect/libnvme_gateway.hpp"

namespace spark::cli {
namespace {

StopFlag stop{false};
volatile std::sig_atomic_t interrupted_by = 0;  // the first signal's number

extern "C" void on_interrupt(int number) {
  stop = true;
  if (interrupted_by == 0) interrupted_by = number;
  ::signal(number, SIG_DFL);  // the second one ends us at once
}

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);  // nohup stays nohup
  }
}

class SystemTimer final : public Timer {
 public:
  WallTime wall() const override { return clock_.wall(); }
  SteadyTime steady() const override { return clock_.steady(); }
  void sleep(Duration duration) override {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
    const std::chrono::nanoseconds rest = duration - seconds;
    const timespec wanted{static_cast<time_t>(seconds.count()), static_cast<long>(rest.count())};
    if (!stop) ::nanosleep(&wanted, nullptr);
  }

 private:
  SystemClock clock_;
};

Terminal this_terminal() {
  return look_at_terminal(STDOUT_FILENO, STDERR_FILENO);
}

Result<ChildOutput> run_tool(const std::vector<std::string>& argv) {
  return run_child(argv, std::chrono::seconds(10));
}

std::string person() {
  if (const char* behind_sudo = std::getenv("SUDO_USER"); behind_sudo != nullptr) return behind_sudo;
  const passwd* user = ::getpwuid(::getuid());
  return user == nullptr ? "uid " + std::to_string(::getuid()) : user->pw_name;
}

int run(int argc, char** argv) {
  SystemTimer timer;
  Context context{std::cout,
                  std::cerr,
                  std::cin,
                  this_terminal(),
                  this_terminal,
                  timer,
                  stop,
                  catch_interrupts,
                  [](const std::string& socket) { return make_unix_client(socket, stop); },
                  [] { return std::make_unique<nvmetcp::LibnvmeGateway>(SystemRoot{}); },
                  make_bounded_formatter,
                  staging::copy,
                  bench::run,
                  run_tool,
                  become,
                  SystemRoot{},
                  ::geteuid() == 0,
                  person(),
                  {},
                  {},
                  {},
                  nullptr};
  App app;
  add_all_verbs(app);
  const int status = app.run(context, {argv + 1, argv + argc});
  if (interrupted_by == SIGINT && status == exit_status(Errc::Cancelled)) end_by_interrupt();
  return status;
}

}  // namespace
}  // namespace spark::cli

int main(int argc, char** argv) {
  ::mallopt(M_ARENA_MAX, 2);  // memory freed by one thread is reused by all
  // Nothing is known to throw. An exception is reported as an error, and does not abort.
  try {
    return spark::cli::run(argc, argv);
  } catch (const std::exception& failure) {
    std::cerr << "spark-stage: " << failure.what() << " - this is a defect, please report it\n";
    return spark::exit_status(spark::Errc::Failed);
  }
}
