// Waits in a task until its datasets are staged.
#ifndef SPARK_SLURM_STAGING_H
#define SPARK_SLURM_STAGING_H

#include "slurm/daemon.h"
#include "slurm/report.h"

typedef struct Timings {
  int64_t first_answer_ms;  // maximum wait for a daemon that has not answered yet
  int64_t reconnect_ms;     // maximum wait for the restart of a daemon that has answered
  int64_t retry_ms;         // interval between two attempts
} Timings;

typedef struct Staging {
  Daemon daemon;
  NameList names;
  JobTag job;
  int wake_fd;  // as in Wait
  Timings timings;
} Staging;

// Waits until every dataset is staged and leased for the job. Returns 0, with `staged` owned by the caller,
// or -1. There is no limit while data is being copied or a volume is waited for: the job's own time limit
// ends the wait.
int stage_and_wait(const Staging* staging, Report* report, StagedList* staged, Failure* failure);

#endif
