#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

extern "C" {
#include "slurm/wait.h"
}

namespace spark {
namespace {

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0); }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void write() const { EXPECT_EQ(::write(ends[1], "x", 1), 1); }
  int ends[2];
};

TEST(Wait, EndsAtItsDeadline) {
  const Pipe silent;
  const Wait wait = wait_for_ms(0, -1);
  EXPECT_EQ(wait_on(silent.ends[0], POLLIN, &wait), -1);
  EXPECT_EQ(errno, ETIMEDOUT);
}

TEST(Wait, EndsWhenTheDescriptorIsReady) {
  const Pipe ready;
  ready.write();
  const Wait wait = wait_for_ms(60'000, -1);
  EXPECT_EQ(wait_on(ready.ends[0], POLLIN, &wait), 0);
}

TEST(Wait, EndsWithTheStepEvenIfTheDescriptorIsReady) {
  const Pipe ready, cancelled;
  ready.write();
  cancelled.write();
  const Wait wait = wait_for_ms(60'000, cancelled.ends[0]);
  EXPECT_EQ(wait_on(ready.ends[0], POLLIN, &wait), -1);
  EXPECT_EQ(errno, ECANCELED);
  EXPECT_EQ(pause_for_ms(60'000, &wait), -1);
  EXPECT_EQ(errno, ECANCELED);
}

TEST(Wait, APauseEndsAtTheDeadlineOfItsWait) {
  const Wait over = wait_for_ms(0, -1), ample = wait_for_ms(60'000, -1);
  EXPECT_EQ(pause_for_ms(1, &ample), 0);
  EXPECT_EQ(pause_for_ms(60'000, &over), -1);
}

// Runs in a child process, with SIGTERM set up like in slurmstepd; exits with 0 if the watch worked
// correctly.
int watch_with(void (*prepare)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    prepare();
    Cancellation watched = watch_cancellation();
    const Wait wait = wait_for_ms(0, watched.fd);
    ::raise(SIGUSR1);  // a signal for the user's program; must not end the wait
    const bool kept_on = wait_on(-1, 0, &wait) != 0 && errno == ETIMEDOUT;
    ::raise(SIGTERM);
    const bool ended = wait_on(-1, 0, &wait) != 0 && errno == ECANCELED;
    ::_exit(kept_on && ended ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(Wait, SeesASignalThatSlurmstepdBlocks) {
  EXPECT_EQ(watch_with([] {
              sigset_t blocked;
              sigemptyset(&blocked);
              for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&blocked, signal);
              sigprocmask(SIG_BLOCK, &blocked, nullptr);
            }),
            0);
}

TEST(Wait, SeesASignalThatSlurmstepdIgnores) {
  EXPECT_EQ(watch_with([] {
              for (const int number : {SIGTERM, SIGINT, SIGUSR1}) ::signal(number, SIG_IGN);
            }),
            0);
}

TEST(Wait, LeavesTheSignalsAsTheyWere) {
  sigset_t before, after;
  sigprocmask(SIG_SETMASK, nullptr, &before);
  Cancellation watched = watch_cancellation();
  end_watch(&watched);
  sigprocmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
  EXPECT_EQ(watched.fd, -1);
}

}  // namespace
}  // namespace spark
