// The environment of a verb. All external services are passed in, so that tests can replace them.
#pragma once

#include <functional>
#include <istream>
#include <memory>
#include <ostream>
#include <string>

#include "base/child.hpp"
#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/threads.hpp"
#include "bench/measure/bench.hpp"
#include "cli/client/client.hpp"
#include "cli/foreground.hpp"
#include "cli/format/namespace_formatter.hpp"
#include "cli/view/terminal.hpp"
#include "nvmetcp/connect/gateway.hpp"
#include "staging/copy/copy.hpp"

namespace spark::cli {

// Time that a verb reads and waits for; a test's passes at once.
class Timer : public Clock {
 public:
  virtual void sleep(Duration duration) = 0;  // shorter when a signal comes
};

using CopyEngine = std::function<Result<staging::CopyReport>(
    const std::filesystem::path& source, const std::filesystem::path& destination,
    const staging::CopyOptions& options, const staging::ProgressSink& progress, const StopFlag& stop)>;

using BenchRun = std::function<Result<bench::Record>(
    const bench::BenchOptions& options, const bench::ProgressSink& progress, const StopFlag& stop)>;

struct Context {
  std::ostream& out;
  std::ostream& err;
  std::istream& in;  // the user's answers
  Terminal terminal;
  std::function<Terminal()> look_at_terminal;  // again: windows are resized
  Timer& timer;
  StopFlag& stop;                          // set by ^C, SIGTERM and SIGHUP once catch_interrupts was called
  std::function<void()> catch_interrupts;  // from here on an interrupt sets `stop`; a second one kills
  std::function<std::unique_ptr<Client>(const std::string& socket)> make_client;
  std::function<std::unique_ptr<nvmetcp::NvmeGateway>()> make_gateway;
  std::function<std::unique_ptr<NamespaceFormatter>()> make_formatter;
  CopyEngine copy;
  BenchRun bench;
  std::function<Result<ChildOutput>(const std::vector<std::string>& argv)> run_tool;  // with a deadline
  std::function<Result<int>(const std::vector<std::string>& command, const Environment& more,
                            const std::function<void()>& afterwards)>
      become;  // a test's runs the command to its end instead, and returns its status
  SystemRoot root;
  bool is_root = false;
  std::string person{};  // the user, also behind sudo: "alice"

  // From the command line, filled in before a verb runs.
  std::string config_file;
  std::string socket;
  std::vector<std::string> command;  // the words after `--`
  std::unique_ptr<Client> client;
};

}  // namespace spark::cli
