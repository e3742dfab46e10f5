// The variables that a step finds in its environment: the paths of its datasets' copies and of its outputs.
#ifndef SPARK_SLURM_ENVIRONMENT_H
#define SPARK_SLURM_ENVIRONMENT_H

#include <slurm/spank.h>

#include "slurm/daemon.h"
#include "slurm/failure.h"
#include "slurm/json.h"
#include "slurm/names.h"

// `names` are those of the request, as the user wrote them, and `staged` the copies in the same order.
int set_dataset_variables(spank_t spank, const Daemon* daemon, const NameList* names,
                          const StagedList* staged, Failure* failure);

// For for_each_output(); `context` is the spank_t.
int set_output_variable(void* context, const char* output, const char* folder, Failure* failure);

#endif
