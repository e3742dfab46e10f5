// Requests from the plugin to this host's spark-staged.
#ifndef SPARK_SLURM_DAEMON_H
#define SPARK_SLURM_DAEMON_H

#include "slurm/failure.h"
#include "slurm/json.h"
#include "slurm/names.h"
#include "slurm/settings.h"
#include "slurm/wait.h"

// The kind of a Failure if spark-staged gave no answer at all.
extern const char kUnreachable[];

// Returns the key of the staging job, owned by the caller; NULL on failure. Joins a staging in progress for
// the same Slurm job.
char* request_staging(const Daemon* daemon, const NameList* names, const JobTag* job, bool prefetch,
                      const Wait* wait, Failure* failure);
// Ends the Slurm job's leases and its stagings. Returns 0 also if there are none.
int release_job(const Daemon* daemon, uint32_t job, const Wait* wait, Failure* failure);
// The answer of GET /v1/outputs/NAME, owned by the caller; NULL on failure.
char* read_output(const Daemon* daemon, const char* output, const Wait* wait, Failure* failure);
// Reports that a job which wrote to the output has ended, so that the daemon sends complete checkpoints. The
// output must be a configured one.
int request_final(const Daemon* daemon, const char* output, const Wait* wait, Failure* failure);
// The active configuration, owned by the caller; NULL on failure.
char* read_config(const Daemon* daemon, const Wait* wait, Failure* failure);
// 0: all names are configured on this host, or the check is not possible; -1: the daemon rejects one.
int check_names(const Daemon* daemon, const NameList* names, const Wait* wait, Failure* failure);

// Describes a failed request from errno.
void describe_unreachable(const Daemon* daemon, int error, Failure* failure);

#endif
