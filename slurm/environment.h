// The variables that a step finds in its environment: the paths of its datasets' copies and of its outputs.
#ifndef SPARK_SLURM_ENVIRONMENT_H
#define SPARK_SLURM_ENVIRONMENT_H

#include "slurm/daemon.h"
#include "slurm/failure.h"
#include "slurm/json.h"
#include "slurm/names.h"

// A step's environment; `set` is 0, or says what failed.
typedef struct Environment {
  int (*set)(void* step, const char* name, const char* value, Failure* failure);
  void* step;
} Environment;

// `names` are those of the request, as the user wrote them, and `staged` the copies in the same order.
int set_dataset_variables(const Environment* environment, const Daemon* daemon, const NameList* names,
                          const StagedList* staged, Failure* failure);

// For for_each_output(); its context is the Environment.
int set_output_variable(void* environment, const char* output, const char* folder, Failure* failure);

#endif
