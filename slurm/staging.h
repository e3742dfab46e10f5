// The wait of a task for its datasets.
#ifndef SPARK_SLURM_STAGING_H
#define SPARK_SLURM_STAGING_H

#include "slurm/daemon.h"
#include "slurm/report.h"

typedef struct Timings {
  int64_t first_answer_ms;  // how long to wait for a daemon that has not answered yet
  int64_t reconnect_ms;     // and for the return of one that has: systemd restarts it
  int64_t retry_ms;         // between two attempts
} Timings;

typedef struct Staging {
  Daemon daemon;
  NameList names;
  JobTag job;
  int wake_fd;  // as in Wait
  Timings timings;
} Staging;

// Returns when every dataset is staged and leased for the job: 0, and the caller owns `staged`. Else -1. As
// long as data moves, or a volume is waited for, there is no limit: the job's own time limit ends the wait.
int stage_and_wait(const Staging* staging, Report* report, StagedList* staged, Failure* failure);

#endif
