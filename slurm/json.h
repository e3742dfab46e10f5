// The daemon's JSON, read and written with json-c, which no other file sees.
#ifndef SPARK_SLURM_JSON_H
#define SPARK_SLURM_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "slurm/failure.h"
#include "slurm/names.h"

// Whom a copy is staged for, and with whom its lease ends.
typedef struct JobTag {
  uint32_t id;
  const char* user;  // NULL: not known
  pid_t process;     // lives as long as the step; 0: none yet
} JobTag;

typedef struct Progress {
  char dataset[256];
  char phase[32];
  char reason[512];  // empty: none
  int64_t bytes_done, bytes_total;
  double bytes_per_second;
  double eta_s;  // negative: not known
} Progress;

typedef struct StagedList {
  size_t count;
  char** names;
  char** paths;
} StagedList;

typedef enum EventKind { EventOther, EventProgress, EventDone, EventFailed } EventKind;

// The body of a staging request, owned by the caller; NULL: no memory. Without a job no lease is asked for.
char* json_staging(const NameList* names, const JobTag* job, bool prefetch);
// The id of the job that took a request; NULL: there is none in the answer.
char* json_job_id(const char* answer);
// What a refusal says; the HTTP status if it says nothing.
void json_read_error(const char* answer, int status, Failure* failure);
// One line of a job's events. EventDone fills `staged`, which the caller owns then; EventFailed fills
// `failure`.
EventKind json_read_event(const char* line, Progress* progress, StagedList* staged, Failure* failure);
void free_staged(StagedList* staged);

// Of the answer of GET /v1/config. A name with a colon is known if its volume is.
bool json_config_has(const char* config, const char* name);
// The folder of an output, owned by the caller; NULL: there is no such output.
char* json_config_output(const char* config, const char* name);
// Why an output's newest checkpoint is not on its volume, of the answer of GET /v1/outputs/NAME. Owned by the
// caller; NULL: it is there, or nothing is known.
char* json_unsent(const char* output);
// The `env` of a dataset, owned by the caller; NULL: it has none.
char* json_config_env(const char* config, const char* name);

#endif
