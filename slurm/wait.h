// How long a call may block, and what ends it earlier.
#ifndef SPARK_SLURM_WAIT_H
#define SPARK_SLURM_WAIT_H

#include <signal.h>
#include <stdint.h>

typedef struct Wait {
  int64_t until_ms;  // of now_ms()
  int wake_fd;       // readable: the job is being cancelled; -1: nothing to watch
} Wait;

int64_t now_ms(void);  // of the monotonic clock
Wait wait_for_ms(int64_t ms, int wake_fd);

// Until fd (-1: only the time) has one of the events of poll(2). 0: it has; else -1 with errno ETIMEDOUT or
// ECANCELED.
int wait_on(int fd, short events, const Wait* wait);

// Lets that much time pass. 0: it did; else -1 with errno as above.
int pause_for_ms(int64_t ms, const Wait* wait);

// The signals that end a step. slurmstepd blocks or ignores them, by its version, until it starts the user's
// program, so they would be lost.
typedef struct Cancellation {
  int fd;  // readable once one of them is pending, which it stays; -1: not available
  sigset_t mask_before;
} Cancellation;

Cancellation watch_cancellation(void);
void end_watch(Cancellation* cancellation);

#endif
