// Sets the environment variables of a step: the paths of its datasets' copies and of its outputs.
#ifndef SPARK_SLURM_ENVIRONMENT_H
#define SPARK_SLURM_ENVIRONMENT_H

#include "slurm/daemon.h"
#include "slurm/failure.h"
#include "slurm/json.h"
#include "slurm/names.h"

// A step's environment. `set` returns 0 on success, otherwise it fills in the failure.
typedef struct Environment {
  int (*set)(void* step, const char* name, const char* value, Failure* failure);
  void* step;
} Environment;

// `names` are the requested names as written by the user, and `staged` the copies in the same order.
int set_dataset_variables(const Environment* environment, const NameList* names, const StagedList* staged,
                          Failure* failure);

// Callback for for_each_output(); its context is the Environment.
int set_output_variable(void* environment, const char* output, const char* folder, Failure* failure);

#endif
