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

TEST(Wait, EndsWithItsTime) {
  const Pipe silent;
  const Wait wait = wait_for_ms(0, -1);
  EXPECT_EQ(wait_on(silent.ends[0], POLLIN, &wait), -1);
  EXPECT_EQ(errno, ETIMEDOUT);
}

TEST(Wait, EndsWithWhatItWaitsFor) {
  const Pipe ready;
  ready.write();
  const Wait wait = wait_for_ms(60'000, -1);
  EXPECT_EQ(wait_on(ready.ends[0], POLLIN, &wait), 0);
}

TEST(Wait, EndsWithTheStepWhateverElseIsReady) {
  const Pipe ready, cancelled;
  ready.write();
  cancelled.write();
  const Wait wait = wait_for_ms(60'000, cancelled.ends[0]);
  EXPECT_EQ(wait_on(ready.ends[0], POLLIN, &wait), -1);
  EXPECT_EQ(errno, ECANCELED);
  EXPECT_EQ(pause_for_ms(60'000, &wait), -1);
  EXPECT_EQ(errno, ECANCELED);
}

TEST(Wait, APauseEndsWithTheWaitThatItIsPartOf) {
  const Wait over = wait_for_ms(0, -1), ample = wait_for_ms(60'000, -1);
  EXPECT_EQ(pause_for_ms(1, &ample), 0);
  EXPECT_EQ(pause_for_ms(60'000, &over), -1);
}

// As slurmstepd has them while it starts a task.
TEST(Wait, SeesASignalThatIsBlockedAndLeavesItPending) {
  const pid_t child = ::fork();
  if (child == 0) {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, nullptr);
    const int watched = watch_cancellation();
    const Wait wait = wait_for_ms(0, watched);
    ::raise(SIGUSR1);  // for the user's program; it ends nothing
    const bool kept_on = wait_on(-1, 0, &wait) != 0 && errno == ETIMEDOUT;
    ::raise(SIGTERM);
    const bool ended = wait_on(-1, 0, &wait) != 0 && errno == ECANCELED;
    sigset_t pending;
    sigpending(&pending);
    ::_exit(kept_on && ended && sigismember(&pending, SIGTERM) == 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace spark
