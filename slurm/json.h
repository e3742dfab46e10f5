// Reads and writes the daemon's JSON with json-c. No other file uses json-c.
#ifndef SPARK_SLURM_JSON_H
#define SPARK_SLURM_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "slurm/failure.h"
#include "slurm/names.h"

// The job and user of a staging; the lease ends with the job.
typedef struct JobTag {
  uint32_t id;
  const char* user;   // NULL: unknown
  pid_t process;      // exists as long as the step; 0: none yet
  const char* nodes;  // all nodes of the job, as Slurm writes them; NULL: unknown
} JobTag;

typedef struct Progress {
  char dataset[256];
  char phase[32];
  char reason[512];  // empty if there is none
  int64_t bytes_done, bytes_total;
  double bytes_per_second;
  double eta_s;  // negative: unknown
} Progress;

// The datasets of a result.
typedef struct StagedList {
  size_t count;
  struct json_object* all;
} StagedList;

typedef enum EventKind { EventOther, EventProgress, EventDone, EventFailed } EventKind;

// The body of a staging request, owned by the caller; NULL: out of memory. Without a job it requests no
// lease, and does not wait for a source that is away.
char* json_staging(const NameList* names, const JobTag* job, bool prefetch);
// The key of the job that accepted a request, owned by the caller; NULL if the answer has none.
char* json_job_key(const char* answer);
// Reads the message of a refusal; without a message, uses the HTTP status.
void json_read_error(const char* answer, int status, Failure* failure);
// Parses one line of a job's events. EventDone fills `staged`, which the caller then owns; EventFailed fills
// `failure`.
EventKind json_read_event(const char* line, Progress* progress, StagedList* staged, Failure* failure);
// Valid until free_staged(): the "path" of a dataset, its "env", why it is "unchecked"; NULL: it has none.
const char* staged_text(const StagedList* staged, size_t at, const char* key);
bool is_live(const StagedList* staged, size_t at);  // it is not complete yet
void free_staged(StagedList* staged);

// For the answer of GET /v1/config. A name with a colon is known if its volume is.
bool json_config_has(const char* config, const char* name);
// The folder of an output, owned by the caller; NULL if there is no such output.
char* json_config_output(const char* config, const char* name);
// The reason why an output's newest checkpoint is not on its volume, from the answer of GET /v1/outputs/NAME.
// Owned by the caller; NULL: it is on the volume, or its state is unknown.
char* json_unsent(const char* output);

#endif
