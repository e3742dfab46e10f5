#include "cli/foreground.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/child.hpp"

namespace spark::cli {
namespace {

TEST(Foreground, ReturnsTheCommandsStatus) {
  EXPECT_EQ(run_in_foreground({"true"}, {}).value(), 0);
  EXPECT_EQ(run_in_foreground({"sh", "-c", "exit 42"}, {}).value(), 42);
}

TEST(Foreground, TheStatusAfterASignalIs128PlusItsNumber) {
  EXPECT_EQ(run_in_foreground({"sh", "-c", "kill -9 $$"}, {}).value(), 128 + SIGKILL);
}

TEST(Foreground, SetsTheEnvironment) {
  EXPECT_EQ(
      run_in_foreground({"sh", "-c", "test \"$SPARK_TEST_PATH\" = '/a b'"}, {{"SPARK_TEST_PATH", "/a b"}})
          .value(),
      0);
}

TEST(Foreground, ACommandThatCannotStartIsAnError) {
  const auto missing = run_in_foreground({"/no/such/command"}, {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, Errc::NotFound);
  const auto folder = run_in_foreground({"/etc"}, {});
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().kind, Errc::Denied);
}

// Runs the command in a separate process, so that the test can send it signals.
int status_after_signal(int number, const std::string& script, const std::filesystem::path& started) {
  const pid_t wrapper = ::fork();
  if (wrapper == 0) {
    const auto status = run_in_foreground({"sh", "-c", script}, {});
    ::_exit(status ? *status : 99);
  }
  for (int i = 0; i < 500 && !std::filesystem::exists(started); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ::kill(wrapper, number);
  int status = 0;
  ::waitpid(wrapper, &status, 0);
  return exit_status_of(status);
}

TEST(Foreground, ForwardsSignals) {
  const auto started = std::filesystem::temp_directory_path() / ("spark-fg-" + std::to_string(::getpid()));
  const std::string script =
      "trap 'exit 7' TERM USR1 INT; touch " + started.string() + "; for i in $(seq 200); do sleep 0.1; done";
  for (const int number : {SIGTERM, SIGUSR1, SIGINT}) {
    std::filesystem::remove(started);
    EXPECT_EQ(status_after_signal(number, script, started), 7) << number;
  }
  std::filesystem::remove(started);
}

TEST(Foreground, TheCommandGetsSigtermWhenItsParentIsKilled) {
  const auto started = std::filesystem::temp_directory_path() / ("spark-fg-" + std::to_string(::getpid()));
  const auto told = started.string() + ".told";
  EXPECT_EQ(status_after_signal(SIGKILL,
                                "trap 'touch " + told + "; exit' TERM; touch " + started.string() +
                                    "; for i in $(seq 200); do sleep 0.1; done",
                                started),
            128 + SIGKILL);
  for (int i = 0; i < 250 && !std::filesystem::exists(told); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(std::filesystem::exists(told));
  std::filesystem::remove(started);
  std::filesystem::remove(told);
}

}  // namespace
}  // namespace spark::cli
