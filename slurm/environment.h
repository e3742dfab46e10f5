// The environment of a step: variables with the paths of its datasets' copies and of its outputs, a folder
// for HF_HUB_CACHE, and live views among its mounts. HF_HOME stays as it is: tokens and other caches are
// there.
#ifndef SPARK_SLURM_ENVIRONMENT_H
#define SPARK_SLURM_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "slurm/daemon.h"
#include "slurm/failure.h"
#include "slurm/json.h"
#include "slurm/names.h"

// A step's environment. `set` returns 0 on success, otherwise it fills in the failure. `get` returns whether
// the variable is set; a value that is too long is cut.
typedef struct Environment {
  int (*set)(void* step, const char* name, const char* value, Failure* failure);
  bool (*get)(void* step, const char* name, char* value, size_t size);
  void (*unset)(void* step, const char* name);
  void* step;
} Environment;

// `names` are the requested names as written by the user, and `staged` the copies in the same order.
int set_dataset_variables(const Environment* environment, const NameList* names, const StagedList* staged,
                          Failure* failure);

// SPARK_STAGE_OUT_<NAME>.
int set_output_variable(const Environment* environment, const char* output, const char* folder,
                        Failure* failure);

// A private folder of links to the models among a task's datasets, as in `spark-stage run`.
enum { MostHubFolder = 512 };

// Whether one of the datasets is a model that can be loaded by its name.
bool has_hub_links(const StagedList* staged);
// Makes the folder in `temporary`, or in /tmp if that is none. Called with the rights of the job's user.
// Two revisions of one model would have one name, so it has neither.
int make_hub_links(const StagedList* staged, const char* temporary, char folder[MostHubFolder],
                   Failure* failure);
// By its name: made by make_hub_links().
bool is_hub_folder(const char* path);
// Deletes the links, what huggingface_hub made beside them, and the folder if nothing else is left: -1 if
// something is.
int remove_hub_links(const char* folder);

// The job's user. `groups` has all of them, also the one by which the user may reach the folder; owned by
// Slurm.
typedef struct Rights {
  uid_t uid;
  gid_t gid;
  const gid_t* groups;
  size_t group_count;
} Rights;
// The same with the user's rights, in this thread alone, since the folder is in a place that the user chose.
// Called as root, whose rights the thread has again afterwards.
int remove_hub_links_as(const Rights* user, const char* folder);

// A step inherits the variables of its batch script, or of a `spark-stage run` around srun. Their folder is
// on one node alone, and not in a container. What the job itself has set stays.
void drop_inherited_hub_links(const Environment* environment);

// False for a job that has said so, or has chosen another cache; and in a container as far as Slurm tells of
// it: a folder of the host is not there, and the image may have models of its own.
bool wants_hub_links(const Environment* environment);

// After make_hub_links().
int set_hub_variables(const Environment* environment, const char* folder, Failure* failure);

// A job with mounts of its own (job_container/tmpfs) got them before a live view was mounted, and would find
// its bare folder: the view is taken from the namespace of the daemon at `socket`. Called as root, in the
// namespace of the job.
int show_views(const char* socket, const StagedList* staged, Failure* failure);

#endif
