#include "base/child.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <thread>

#include "base/text.hpp"
#include "tests/unit/base/temporary_folder.hpp"

namespace spark {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> shell(const std::string& script) {
  return {"/bin/sh", "-c", script};
}

std::string read_all(const UniqueFd& fd) {
  std::string all;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(fd.get(), buffer, sizeof buffer)) > 0;) {
    all.append(buffer, static_cast<std::size_t>(got));
  }
  return all;
}

bool ends_within(pid_t pid, std::chrono::milliseconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  // A zombie counts as ended: its new parent reaps it later.
  const auto is_gone = [&] {
    const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
    return !stat || stat->find(") Z ") != std::string::npos;
  };
  while (!is_gone()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

TEST(RunChild, CapturesBothOutputsAndTheStatus) {
  const auto output = run_child(shell("echo out; echo err >&2; exit 3"), 10s);
  ASSERT_TRUE(output) << output.error().message();
  EXPECT_EQ(output->out, "out\n");
  EXPECT_EQ(output->err, "err\n");
  EXPECT_EQ(output->exit_status, 3);
}

TEST(RunChild, InputAndOutputMayExceedThePipesCapacity) {
  std::string input(1 << 20, 'x');
  input += "end";
  const auto output = run_child({"cat"}, 20s, input);
  ASSERT_TRUE(output) << output.error().message();
  EXPECT_EQ(output->out, input);
}

TEST(RunChild, UnreadInputIsNotAnError) {
  const auto output = run_child({"true"}, 10s, std::string(1 << 20, 'x'));
  ASSERT_TRUE(output) << output.error().message();
  EXPECT_EQ(output->exit_status, 0);
}

TEST(RunChild, TheExitStatusAfterASignalIs128PlusItsNumber) {
  EXPECT_EQ(run_child(shell("kill -TERM $$"), 10s)->exit_status, 128 + SIGTERM);
}

TEST(RunChild, AChildPastItsDeadlineIsReportedAsTimedOut) {
  const auto output = run_child({"sleep", "60"}, 200ms);
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().kind, Errc::TimedOut);
  EXPECT_EQ(output.error().what, "sleep did not end within 200 ms");
}

// Returns the text that the script wrote into the file before its deadline; retries with longer deadlines on
// a busy machine.
std::string written_by(const std::string& script, const std::string& file) {
  for (auto deadline = 300ms; deadline < 100s; deadline *= 4) {
    EXPECT_FALSE(run_child(shell(script), deadline));
    if (const auto text = read_file(file); text && !text->empty()) return *text;
  }
  return "0";
}

TEST(RunChild, AChildKilledAtItsDeadlineIsReaped) {
  const TemporaryFolder folder;
  const std::string file = folder / "pid";
  const pid_t pid = std::stoi(written_by("echo $$ > " + file + "; exec sleep 600", file));
  EXPECT_TRUE(ends_within(pid, 5s));
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), -1) << "a zombie was left behind";
}

TEST(RunChild, AGrandchildHoldingThePipeOpenDoesNotExtendTheDeadline) {
  const TemporaryFolder folder;
  const std::string file = folder / "pid";
  const pid_t grandchild = std::stoi(written_by("sleep 600 & echo $! > " + file, file));
  EXPECT_EQ(::kill(grandchild, SIGKILL), 0) << "it was waited for";
}

TEST(Spawn, AMissingProgramFailsImmediately) {
  const auto child = spawn({"/nonexistent/program"});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().kind, Errc::NotFound);
  EXPECT_NE(child.error().what.find("/nonexistent/program"), std::string::npos);
}

TEST(Spawn, ThePidfdBecomesReadableWhenTheChildEnds) {
  ChildOptions options;
  options.pipe_stdin = true;
  auto child = spawn(shell("read line; exit 4"), options);
  ASSERT_TRUE(child) << child.error().message();
  pollfd ended{child->pidfd.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 50), 0);
  child->in.reset();
  EXPECT_EQ(::poll(&ended, 1, 10'000), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child->pid, &status, 0), child->pid);
  EXPECT_EQ(exit_status_of(status), 4);
}

TEST(Spawn, TheChildInheritsNoOtherDescriptor) {
  const auto secret = ::open("/etc/passwd", O_RDONLY | O_CLOEXEC);
  auto child = spawn({"ls", "/proc/self/fd"});
  ASSERT_TRUE(child) << child.error().message();
  // 0, 1, 2, and the descriptor of the folder that ls reads.
  EXPECT_EQ(split(trim(read_all(child->out)), '\n').size(), 4u);
  ::waitpid(child->pid, nullptr, 0);
  ::close(secret);
}

TEST(Spawn, TheChildDoesNotInheritBlockedOrIgnoredSignals) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  const auto old = ::signal(SIGPIPE, SIG_IGN);
  const auto output = run_child({"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"}, 10s);
  ::signal(SIGPIPE, old);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(output) << output.error().message();
  for (const std::string& line : split(trim(output->out), '\n')) {
    const std::uint64_t mask = std::stoull(line.substr(line.find('\t') + 1), nullptr, 16);
    EXPECT_EQ(mask & (1ull << (SIGTERM - 1) | 1ull << (SIGPIPE - 1)), 0u) << line;
  }
}

TEST(Spawn, TheChildHasAProcessGroupOfItsOwn) {
  ChildOptions options;
  options.pipe_stdin = true;
  auto child = spawn({"cat"}, options);
  ASSERT_TRUE(child) << child.error().message();
  EXPECT_EQ(::getpgid(child->pid), child->pid);
  child->in.reset();
  ::waitpid(child->pid, nullptr, 0);
}

// The parent here is a separate process that spawns a sleeper, reports its pid and waits to be killed.
TEST(Spawn, TheChildDiesWithItsParent) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    auto child = spawn({"sleep", "60"});
    const pid_t sleeper = child ? child->pid : -1;
    [[maybe_unused]] const ssize_t told = ::write(ends[1], &sleeper, sizeof sleeper);
    ::pause();
    ::_exit(0);
  }
  pid_t sleeper = -1;
  ASSERT_EQ(::read(ends[0], &sleeper, sizeof sleeper), static_cast<ssize_t>(sizeof sleeper));
  ::close(ends[0]);
  ::close(ends[1]);
  ASSERT_GT(sleeper, 0);
  EXPECT_EQ(::kill(sleeper, 0), 0);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  EXPECT_TRUE(ends_within(sleeper, 5s));
}

TEST(ExitStatus, IsTheProgramsOwnOr128PlusTheSignal) {
  EXPECT_EQ(exit_status_of(7 << 8), 7);
  EXPECT_EQ(exit_status_of(SIGKILL), 128 + SIGKILL);
}

TEST(Child, InheritsTheDescriptorThatItIsGivenAndNoOther) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "file", "inherited "));
  const UniqueFd file(::open((folder / "file").c_str(), O_RDONLY | O_CLOEXEC));
  ChildOptions options;
  options.inherited = file.get();
  const auto child = spawn(shell("cat <&3; ls /proc/self/fd | wc -l"), options);
  ASSERT_TRUE(child) << child.error().message();
  EXPECT_EQ(read_all(child->out), "inherited 5\n") << "0 to 3, and the folder that ls reads";
  ::waitpid(child->pid, nullptr, 0);
}

}  // namespace
}  // namespace spark
