// The environment of a verb in a test: recorded answers, a clock without waiting, screens kept in files.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/threads.hpp"
#include "cli/verbs/verbs.hpp"

namespace spark::cli {

class ManualTimer final : public Timer {
 public:
  WallTime wall() const override { return std::chrono::system_clock::from_time_t(1'795'188'086) + elapsed_; }
  SteadyTime steady() const override { return SteadyTime(std::chrono::hours(1)) + elapsed_; }
  void sleep(Duration duration) override {
    elapsed_ += duration;
    if (on_sleep) on_sleep();
  }
  std::function<void()> on_sleep;  // called during each sleep

 private:
  Duration elapsed_{0};
};

// Replays answers by "METHOD target", each list in its order; the last answer is repeated indefinitely.
// Unexpected requests are answered with 404.
class FakeClient final : public Client {
 public:
  struct Stream {
    std::vector<std::string> lines;
    Error end{Errc::Unavailable, "the connection was cut", ""};
    Duration between{0};  // time that passes before each line
    std::function<void()> afterwards = [] {};
  };

  explicit FakeClient(ManualTimer& timer) : timer_(timer) {}

  void answer(const std::string& request, unsigned status, std::string body) {
    answers_[request].push_back(Answer{status, std::move(body)});
  }
  void fail_once(const std::string& request, Error error) {
    answers_[request].push_back(fail(std::move(error)));
  }
  void stream_once(const std::string& target, Stream stream) {
    streams_[target].push_back(std::move(stream));
  }

  Result<Answer> send(const Request& request) override;
  Result<Answer> stream(const Request& request, const LineSink& sink, Duration silence) override;

  std::vector<std::string> sent;  // "METHOD target body"
  std::string server;             // of each answer

 private:
  ManualTimer& timer_;
  std::map<std::string, std::deque<Result<Answer>>> answers_;
  std::map<std::string, std::deque<Stream>> streams_;
};

// Runs the program's command line within this process.
class Program {
 public:
  Program();
  int run(std::vector<std::string> arguments);
  std::string output() const { return out.str(); }
  std::string errors() const { return err.str(); }

  std::ostringstream out, err;
  std::istringstream in;
  ManualTimer timer;
  FakeClient client{timer};
  StopFlag stop{false};
  Context context;
};

// Compares with tests/unit/cli/golden/NAME; SPARK_UPDATE_GOLDEN=1 writes it instead.
void expect_golden(const std::string& name, const std::string& text);

// The same for a terminal's screen; no line may be wider than the terminal.
void expect_golden_screen(const std::string& name, const std::string& text, std::size_t columns = 80);

std::string golden_input(const std::string& name);

}  // namespace spark::cli
