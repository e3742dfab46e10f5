// The outputs named by --stage-out: local folders for data that is sent to a volume.
#ifndef SPARK_SLURM_OUTPUTS_H
#define SPARK_SLURM_OUTPUTS_H

#include "slurm/daemon.h"
#include "slurm/environment.h"
#include "slurm/failure.h"
#include "slurm/names.h"
#include "slurm/wait.h"

// Parses "A,B" of --stage-out=A,B: names of configured outputs. On success the caller owns the list.
int parse_outputs(const char* text, NameList* list, Failure* failure);

// 0: all outputs are configured on this host, or the check is not possible; -1: one is not.
int check_outputs(const Daemon* daemon, const NameList* outputs, const Wait* wait, Failure* failure);

// Sets a variable to the folder of each output; without an environment none. -1: an output is not configured
// on this node, the daemon does not answer, or a variable could not be set.
int set_output_variables(const Environment* environment, const Daemon* daemon, const NameList* outputs,
                         const Wait* wait, Failure* failure);

// Reports the end of the job to the daemon, which then sends the newest complete checkpoint of each output.
// Returns the first failure, but requests all of them.
int send_outputs(const Daemon* daemon, const NameList* outputs, const Wait* wait, Failure* failure);

// Prints a line for each output with its newest checkpoint not yet on its volume. Skips outputs that can't be
// queried.
void report_unsent(const Daemon* daemon, const NameList* outputs, const Wait* wait,
                   void (*show)(const char* line));

#endif
