// The datasets named by an option, and the environment variable for the path of each.
#ifndef SPARK_SLURM_NAMES_H
#define SPARK_SLURM_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "slurm/failure.h"

typedef struct NameList {
  size_t count;
  char** names;
  bool*
      now;  // of each name, whether it ends with ":now": it may be read before it is complete; NULL: of none
} NameList;

// Parses "A,B:now" of --stage=A,B:now: each a configured name, or VOLUME:PATH. Duplicates are dropped. On
// success the caller owns the list.
int parse_names(const char* option, const char* text, NameList* list, Failure* failure);
void free_names(NameList* list);

// "SPARK_STAGE_<NAME>", the same variable as in `spark-stage run`. The caller owns it; NULL: out of memory.
char* environment_name(const char* dataset);

#endif
