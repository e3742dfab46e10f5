// The outputs that --stage-out names: where a job writes what belongs on a volume.
#ifndef SPARK_SLURM_OUTPUTS_H
#define SPARK_SLURM_OUTPUTS_H

#include "slurm/daemon.h"
#include "slurm/failure.h"
#include "slurm/names.h"
#include "slurm/wait.h"

// "A,B" as in --stage-out=A,B: names of the configuration's outputs. On success the caller owns the list.
int parse_outputs(const char* text, NameList* list, Failure* failure);

// 0: all are configured here, or that can't be told; -1: one is not.
int check_outputs(const Daemon* daemon, const NameList* outputs, const Wait* wait, Failure* failure);

// Called for each output with its folder; anything but 0 ends the calls.
typedef int OutputCall(void* context, const char* output, const char* folder, Failure* failure);
// -1: one is not configured on this node, the daemon does not answer, or a call failed.
int for_each_output(const Daemon* daemon, const NameList* outputs, const Wait* wait, OutputCall* call,
                    void* context, Failure* failure);

// Tells the daemon that the job has ended: it sends the newest complete checkpoint of each. The first failure
// is returned, and the others are asked for all the same.
int send_outputs(const Daemon* daemon, const NameList* outputs, const Wait* wait, Failure* failure);

// A line for each output whose newest checkpoint is not on its volume. What can't be asked is left out.
void report_unsent(const Daemon* daemon, const NameList* outputs, const Wait* wait,
                   void (*show)(const char* line));

// "SPARK_STAGE_OUT_<NAME>", whose value is the output's folder. The caller owns it; NULL: no memory.
char* output_variable(const char* output);

#endif
