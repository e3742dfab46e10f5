// The datasets that an option names, and the variable in which a task finds each.
#ifndef SPARK_SLURM_NAMES_H
#define SPARK_SLURM_NAMES_H

#include <stddef.h>

#include "slurm/failure.h"

typedef struct NameList {
  size_t count;
  char** names;
} NameList;

// "A,B" as in --stage=A,B: a name of the configuration, or VOLUME:PATH. A name given twice is taken once.
// On success the caller owns the list.
int parse_names(const char* option, const char* text, NameList* list, Failure* failure);
void free_names(NameList* list);

// "SPARK_STAGE_<NAME>", as `spark-stage run` sets it. The caller owns it; NULL: no memory.
char* environment_name(const char* dataset);

#endif
