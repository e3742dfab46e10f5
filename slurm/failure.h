// A refusal or failure, as a sentence for the user and the next step.
#ifndef SPARK_SLURM_FAILURE_H
#define SPARK_SLURM_FAILURE_H

enum { MostKind = 24, MostWhat = 2048, MostHint = 1024 };

typedef struct Failure {
  char kind[MostKind];  // see docs/api.md; "unreachable" if spark-staged gave no answer
  char what[MostWhat];
  char hint[MostHint];  // may be empty
} Failure;

// Always returns -1, so that a function can return the call.
int fail_with(Failure* failure, const char* kind, const char* hint, const char* what, ...)
    __attribute__((format(printf, 4, 5)));

#endif
