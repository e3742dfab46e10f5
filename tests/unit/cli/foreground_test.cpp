#include "cli/foreground.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/child.hpp"
#include "base/file.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::cli {
namespace {

TEST(Foreground, ReturnsTheCommandsStatus) {
  EXPECT_EQ(run_in_foreground({"true"}).value(), 0);
  EXPECT_EQ(run_in_foreground({"sh", "-c", "exit 42"}).value(), 42);
}

TEST(Foreground, TheStatusAfterASignalIs128PlusItsNumber) {
  EXPECT_EQ(run_in_foreground({"sh", "-c", "kill -9 $$"}).value(), 128 + SIGKILL);
}

TEST(Foreground, ACommandThatCannotStartIsAnError) {
  const auto missing = run_in_foreground({"/no/such/command"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, Errc::NotFound);
  const auto folder = become({"/etc"}, {}, {});
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().kind, Errc::Denied);
}

TEST(Foreground, AnInterruptOfTheTerminalEndsTheCommandAlone) {
  ::signal(SIGINT, SIG_DFL);  // a shell has it ignored in what it starts in the background
  EXPECT_EQ(run_in_foreground({"sh", "-c", "kill -INT $PPID $$"}).value(), 128 + SIGINT);
}

// Runs `body` in a process of its own.
template <class Body>
pid_t forked(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return child;
}

int status_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return exit_status_of(status);
}

bool appears(const std::filesystem::path& file) {
  for (int i = 0; i < 500 && !std::filesystem::exists(file); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return std::filesystem::exists(file);
}

TEST(Foreground, TheCommandGetsSigtermWhenItsParentIsKilled) {
  const test::TempFolder folder;
  const std::string started = folder.path() / "started", told = folder.path() / "told";
  const std::string script =
      "trap 'touch " + told + "; exit' TERM; touch " + started + "; for i in $(seq 200); do sleep 0.1; done";
  const pid_t parent = forked([&] { return run_in_foreground({"sh", "-c", script}).value_or(99); });
  EXPECT_TRUE(appears(started));
  ::kill(parent, SIGKILL);
  EXPECT_EQ(status_of(parent), 128 + SIGKILL);
  EXPECT_TRUE(appears(told));
}

TEST(Foreground, TheCommandTakesThePlaceOfTheProgram) {
  const test::TempFolder folder;
  const std::string told = folder.path() / "told";
  const std::string script = "echo $$ $WORD > " + told + "; kill -9 $$";
  const pid_t program = forked([&] { return become({"sh", "-c", script}, {{"WORD", "a b"}}, {}) ? 98 : 99; });
  EXPECT_EQ(status_of(program), 128 + SIGKILL);
  std::string line;
  std::getline(std::ifstream(told) >> std::ws, line);
  EXPECT_EQ(line, std::to_string(program) + " a b");
}

TEST(Foreground, WhatComesAfterTheCommandDoesAlsoIfItsProcessGroupIsKilled) {
  const test::TempFolder folder;
  const std::string started = folder.path() / "started", done = folder.path() / "done";
  const pid_t program = forked([&] {
    ::setpgid(0, 0);
    const auto afterwards = [&] { std::filesystem::rename(started, done); };
    return become({"sh", "-c", "touch " + started + "; exec sleep 1000"}, {}, afterwards) ? 98 : 99;
  });
  EXPECT_TRUE(appears(started));
  EXPECT_FALSE(std::filesystem::exists(done));
  ::kill(-program, SIGKILL);
  EXPECT_EQ(status_of(program), 128 + SIGKILL);
  EXPECT_TRUE(appears(done));
}

TEST(Foreground, ACommandWithoutChildrenHasNone) {
  const pid_t program = forked([&] {
    const std::string script = "read -r children < /proc/$$/task/$$/children; test -z \"$children\"";
    return become({"sh", "-c", script}, {}, [] {}) ? 98 : 99;
  });
  EXPECT_EQ(status_of(program), 0) << "a wait for all children would not end before what comes afterwards";
}

TEST(Foreground, WhatComesAfterTheCommandHoldsNoneOfItsOpenFiles) {
  const test::TempFolder folder;
  const std::string go = folder.path() / "go", done = folder.path() / "done";
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t program = forked([&] {
    const auto afterwards = [&] {
      if (appears(go)) std::ofstream(done).flush();
    };
    return become({"true"}, {}, afterwards) ? 98 : 99;
  });
  ::close(ends[1]);
  EXPECT_EQ(status_of(program), 0);
  pollfd end{ends[0], POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 5000), 1) << "a reader, as of a lock, waits for more than the command";
  ::close(ends[0]);
  std::ofstream(go).flush();
  EXPECT_TRUE(appears(done));
}

TEST(Foreground, WhatComesAfterTheCommandWaitsForItAlsoWithoutAStandardInput) {
  const test::TempFolder folder;
  const std::string ended = folder.path() / "ended", done = folder.path() / "done";
  const pid_t program = forked([&] {
    ::close(STDIN_FILENO);
    const auto afterwards = [&] {
      std::error_code missing;
      std::filesystem::rename(ended, done, missing);
    };
    return become({"sh", "-c", "sleep 0.5; touch " + ended}, {}, afterwards) ? 98 : 99;
  });
  EXPECT_EQ(status_of(program), 0);
  EXPECT_TRUE(appears(done));
}

TEST(Foreground, NothingComesAfterACommandThatCouldNotBeStarted) {
  const test::TempFolder folder;
  const std::string done = folder.path() / "done";
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t program = forked([&] {
    ::dup2(ends[1], STDERR_FILENO);
    const auto afterwards = [&] { std::ofstream(done).flush(); };
    return become({"/no/such/command"}, {}, afterwards) ? 98 : 99;
  });
  ::close(ends[1]);
  EXPECT_EQ(status_of(program), 99);
  char byte = 0;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0) << "its end is that of the process that would do it";
  ::close(ends[0]);
  EXPECT_FALSE(std::filesystem::exists(done));
}

TEST(Foreground, AnInterruptAtATerminalEndsTheProgramByTheSignal) {
  const UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal || ::grantpt(terminal.get()) != 0 || ::unlockpt(terminal.get()) != 0)
    GTEST_SKIP() << "this host has no pseudo-terminals";
  const std::string name = ::ptsname(terminal.get());
  const auto run = [&](bool at_terminal) {
    return status_of(forked([&] {
      ::setsid();
      ::signal(SIGINT, SIG_DFL);                                       // as above
      if (at_terminal && ::open(name.c_str(), O_RDWR) < 0) return 98;  // it becomes the session's
      end_by_interrupt();
      return 99;
    }));
  };
  EXPECT_EQ(run(true), 128 + SIGINT) << "a shell's loop would go on";
  EXPECT_EQ(run(false), 99) << "a program that started it reads the exit status";
}

}  // namespace
}  // namespace spark::cli
