#include "slurm/environment.h"

#include <stdlib.h>

#include "slurm/names.h"
#include "slurm/outputs.h"
#include "slurm/wait.h"

enum { ConfigMs = 5000 };  // for the daemon's configuration, which has the variables that users chose

static int set_variable(spank_t spank, const char* name, const char* path, Failure* failure) {
  if (spank_setenv(spank, name, path, 1) == ESPANK_SUCCESS) return 0;
  return fail_with(failure, "failed", "", "the variable %s of the step could not be set", name);
}

int set_dataset_variables(spank_t spank, const Daemon* daemon, const NameList* names,
                          const StagedList* staged, Failure* failure) {
  if (staged->count != names->count)
    return fail_with(failure, "failed", "are spark-stage and spark-stage-slurm of one version?",
                     "spark-staged reported %zu copies for %zu datasets", staged->count, names->count);
  const Wait wait = wait_for_ms(ConfigMs, -1);
  Failure ignored;
  char* config = read_config(daemon, &wait, &ignored);
  int result = 0;
  for (size_t at = 0; at < names->count && result == 0; ++at) {
    char* variable = environment_name(names->names[at]);
    char* other = config == NULL ? NULL : json_config_env(config, names->names[at]);
    result = variable == NULL ? fail_with(failure, "failed", "", "no memory for the step's variables")
                              : set_variable(spank, variable, staged->paths[at], failure);
    if (result == 0 && other != NULL) result = set_variable(spank, other, staged->paths[at], failure);
    free(variable);
    free(other);
  }
  free(config);
  return result;
}

int set_output_variable(void* context, const char* output, const char* folder, Failure* failure) {
  char* variable = output_variable(output);
  const int result = variable == NULL ? fail_with(failure, "failed", "", "no memory for the step's variables")
                                      : set_variable(context, variable, folder, failure);
  free(variable);
  return result;
}
