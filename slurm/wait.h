// A time limit for a blocking call, and a descriptor that ends it earlier.
#ifndef SPARK_SLURM_WAIT_H
#define SPARK_SLURM_WAIT_H

#include <signal.h>
#include <stdint.h>

typedef struct Wait {
  int64_t until_ms;  // time of now_ms()
  int wake_fd;       // readable: the job is being cancelled; -1: none
  int64_t
      restart_until_ms;  // a daemon that is not there may be restarting until then; 0: it is not waited for
} Wait;

int64_t now_ms(void);  // From the monotonic clock.
Wait wait_for_ms(int64_t ms, int wake_fd);
// For an answer, at first for a restart of the daemon.
Wait wait_for_restart_ms(int64_t restart_ms, int64_t ms, int wake_fd);

// Waits until fd has one of the events of poll(2); fd -1 waits for the time alone. Returns 0 on an event,
// else -1 with errno ETIMEDOUT or ECANCELED.
int wait_on(int fd, short events, const Wait* wait);

// Waits for that time. Returns 0 afterwards, or -1 with errno as above.
int pause_for_ms(int64_t ms, const Wait* wait);

// The signals that end a step. Depending on its version, slurmstepd blocks or ignores them until it starts
// the user's program, so they would be lost.
typedef struct Cancellation {
  int fd;  // readable once a signal is pending, and stays so; -1: not available
  sigset_t mask_before;
} Cancellation;

Cancellation watch_cancellation(void);
void end_watch(Cancellation* cancellation);

#endif
