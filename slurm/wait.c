#include "slurm/wait.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

Wait wait_for_ms(int64_t ms, int wake_fd) {
  return (Wait){.until_ms = now_ms() + ms, .wake_fd = wake_fd};
}

Wait wait_for_restart_ms(int64_t restart_ms, int64_t ms, int wake_fd) {
  const int64_t until_ms = now_ms() + restart_ms;
  return (Wait){.until_ms = until_ms + ms, .wake_fd = wake_fd, .restart_until_ms = until_ms};
}

int wait_on(int fd, short events, const Wait* wait) {
  struct pollfd polled[] = {{.fd = wait->wake_fd, .events = POLLIN}, {.fd = fd, .events = events}};
  for (;;) {
    const int64_t left = wait->until_ms - now_ms();
    const int ready = poll(polled, 2, left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left);
    if (ready < 0 && errno != EINTR) return -1;
    if (ready > 0 && polled[0].revents != 0) {
      errno = ECANCELED;
      return -1;
    }
    if (ready > 0) return 0;
    if (ready == 0 && left <= 0) {
      errno = ETIMEDOUT;
      return -1;
    }
  }
}

int pause_for_ms(int64_t ms, const Wait* wait) {
  Wait pause = wait_for_ms(ms, wait->wake_fd);
  const bool cut = wait->until_ms < pause.until_ms;
  if (cut) pause.until_ms = wait->until_ms;
  wait_on(-1, 0, &pause);
  return errno == ETIMEDOUT && !cut ? 0 : -1;
}

Cancellation watch_cancellation(void) {
  Cancellation cancellation = {.fd = -1};
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);  // scancel, a time limit
  sigaddset(&ending, SIGINT);   // an interrupted srun
  sigaddset(&ending, SIGQUIT);
  sigaddset(&ending, SIGHUP);  // a closed terminal
  // A blocked signal stays pending even if it is ignored.
  if (sigprocmask(SIG_BLOCK, &ending, &cancellation.mask_before) != 0) return cancellation;
  cancellation.fd = signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK);
  if (cancellation.fd < 0) sigprocmask(SIG_SETMASK, &cancellation.mask_before, NULL);
  return cancellation;
}

void end_watch(Cancellation* cancellation) {
  if (cancellation->fd < 0) return;
  close(cancellation->fd);
  cancellation->fd = -1;
  sigprocmask(SIG_SETMASK, &cancellation->mask_before, NULL);
}
