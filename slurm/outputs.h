// The outputs named by --stage-out: local folders for data that is sent to a volume.
#ifndef SPARK_SLURM_OUTPUTS_H
#define SPARK_SLURM_OUTPUTS_H

#include "slurm/daemon.h"
#include "slurm/failure.h"
#include "slurm/names.h"
#include "slurm/wait.h"

// Parses "A,B" of --stage-out=A,B: names of configured outputs. On success the caller owns the list.
int parse_outputs(const char* text, NameList* list, Failure* failure);

// 0: all outputs are configured on this host, or the check is not possible; -1: one is not.
int check_outputs(const Daemon* daemon, const NameList* outputs, const Wait* wait, Failure* failure);

// Called for each output with its folder; a result other than 0 ends the loop.
typedef int OutputCall(void* context, const char* output, const char* folder, Failure* failure);
// -1: an output is not configured on this node, the daemon does not answer, or a call failed.
int for_each_output(const Daemon* daemon, const NameList* outputs, const Wait* wait, OutputCall* call,
                    void* context, Failure* failure);

// Reports the end of the job to the daemon, which then sends the newest complete checkpoint of each output.
// Returns the first failure, but requests all of them.
int send_outputs(const Daemon* daemon, const NameList* outputs, const Wait* wait, Failure* failure);

// Prints a line for each output with its newest checkpoint not yet on its volume. Skips outputs that can't be
// queried.
void report_unsent(const Daemon* daemon, const NameList* outputs, const Wait* wait,
                   void (*show)(const char* line));

// "SPARK_STAGE_OUT_<NAME>", the variable for the output's folder. The caller owns it; NULL: out of memory.
char* output_variable(const char* output);

#endif
