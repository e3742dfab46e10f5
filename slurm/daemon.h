// What the plugin asks of this host's spark-staged.
#ifndef SPARK_SLURM_DAEMON_H
#define SPARK_SLURM_DAEMON_H

#include "slurm/failure.h"
#include "slurm/json.h"
#include "slurm/names.h"
#include "slurm/wait.h"

typedef struct Daemon {
  const char* socket;
  const char* node;  // for messages: several nodes write to one terminal
} Daemon;

// The kind of a Failure when spark-staged gave no answer at all.
extern const char kUnreachable[];

// The job that stages, as an id that the caller owns; NULL on failure. A staging under way for the same Slurm
// job is joined.
char* request_staging(const Daemon* daemon, const NameList* names, const JobTag* job, bool prefetch,
                      const Wait* wait, Failure* failure);
// Ends the Slurm job's leases and its stagings. 0 also if it has none.
int release_job(const Daemon* daemon, uint32_t job, const Wait* wait, Failure* failure);
// The answer of GET /v1/outputs/NAME, owned by the caller; NULL: `failure` says why.
char* read_output(const Daemon* daemon, const char* output, const Wait* wait, Failure* failure);
// That a job which wrote to the output has ended: the daemon sends what is complete. The name is one of the
// configuration.
int request_final(const Daemon* daemon, const char* output, const Wait* wait, Failure* failure);
// The configuration in force, owned by the caller; NULL on failure.
char* read_config(const Daemon* daemon, const Wait* wait, Failure* failure);
// 0: all are configured here, or that can't be told; -1: the daemon refuses one.
int check_names(const Daemon* daemon, const NameList* names, const Wait* wait, Failure* failure);

// Failure of a request, from errno.
void describe_unreachable(const Daemon* daemon, int error, Failure* failure);

#endif
