#include "slurm/environment.h"

#include <stdlib.h>

#include "slurm/names.h"
#include "slurm/outputs.h"

static int set_variable(const Environment* environment, const char* name, const char* value,
                        Failure* failure) {
  if (value == NULL) return fail_with(failure, "failed", "", "spark-staged reported a copy without a path");
  if (name == NULL) return fail_with(failure, "failed", "", "no memory for the step's variables");
  return environment->set(environment->step, name, value, failure);
}

int set_dataset_variables(const Environment* environment, const NameList* names, const StagedList* staged,
                          Failure* failure) {
  if (staged->count != names->count)
    return fail_with(failure, "failed", "are spark-stage and spark-stage-slurm of one version?",
                     "spark-staged reported %zu copies for %zu datasets", staged->count, names->count);
  int result = 0;
  for (size_t at = 0; at < names->count && result == 0; ++at) {
    char* variable = environment_name(names->names[at]);
    const char *path = staged_text(staged, at, "path"), *other = staged_text(staged, at, "env");
    result = set_variable(environment, variable, path, failure);
    if (result == 0 && other != NULL) result = set_variable(environment, other, path, failure);
    free(variable);
  }
  return result;
}

int set_output_variable(void* environment, const char* output, const char* folder, Failure* failure) {
  char* variable = output_variable(output);
  const int result = set_variable(environment, variable, folder, failure);
  free(variable);
  return result;
}
