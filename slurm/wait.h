// How long a call may block, and what ends it earlier.
#ifndef SPARK_SLURM_WAIT_H
#define SPARK_SLURM_WAIT_H

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

// A descriptor that is readable once a signal that ends a step is pending: slurmstepd blocks those until it
// starts the user's program, so they would be lost. The signals stay pending. -1: not available.
int watch_cancellation(void);

#endif
