// The hooks that Slurm calls. On a node only a task's hook may fail: after other failures Slurm drains the
// node. A failure ends the process of the hook, instead of being returned: with `optional` in plugstack.conf,
// which Slurm needs to go on where the plugin is missing, Slurm ignores what a hook returns.
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#include <slurm/spank.h>

#include "slurm/daemon.h"
#include "slurm/environment.h"
#include "slurm/mark.h"
#include "slurm/names.h"
#include "slurm/outputs.h"
#include "slurm/report.h"
#include "slurm/settings.h"
#include "slurm/staging.h"
#include "slurm/wait.h"

SPANK_PLUGIN(spark_stage, 1)

enum {
  HookMs = 1000,    // limit for all work of the prolog or the epilog
  SubmitMs = 5000,  // limit for checking names in the submitting command
  FirstAnswerMs = 10000,
  LookMs = 5000,  // limit for checking a task's outputs after its end
  RetryMs = 1000,
  MostNodeList = 4096,  // bytes
  MostOption = 16384,
  ReconnectMs = 60000,  // systemd restarts a daemon that was killed, in this time
};

enum { OptionStage, OptionPrefetch, OptionStageOut, OptionCount };

static int keep_option(int which, const char* argument, int remote);

static struct spank_option options[OptionCount] = {
    {"stage", "DATASET[:now][,DATASET...]",
     "stage datasets to each node's own drive, verified, before tasks start; $SPARK_STAGE_<NAME> has the "
     "path. With :now tasks start at once, and reads of what is missing wait",
     1, OptionStage, keep_option},
    {"prefetch", "DATASET[,DATASET...]", "stage the next job's datasets at idle priority, without waiting", 1,
     OptionPrefetch, keep_option},
    {"stage-out", "OUTPUT[,OUTPUT...]",
     "when the job has ended, send the newest complete checkpoint of outputs to their volumes; "
     "$SPARK_STAGE_OUT_<NAME> has the folder to write to",
     1, OptionStageOut, keep_option},
};

// The options given to the submitting command.
static char* given[OptionCount];

static int keep_option(int which, const char* argument, int remote) {
  (void)remote;
  free(given[which]);
  given[which] = argument == NULL ? NULL : strdup(argument);
  return 0;
}

// NULL: the job does not use the option.
static const char* option_of(spank_t spank, int which) {
  // A batch script gets its options in variables, which `sbatch --export` filters, except for these copies.
  static const char* const copies[OptionCount] = {"SLURM_SPANK__SLURM_SPANK_OPTION_spark_stage_stage",
                                                  "SLURM_SPANK__SLURM_SPANK_OPTION_spark_stage_prefetch",
                                                  "SLURM_SPANK__SLURM_SPANK_OPTION_spark_stage_stage_out"};
  static char values[OptionCount][MostOption];
  char* value = NULL;
  if (spank_option_getopt(spank, &options[which], &value) == ESPANK_SUCCESS) return value;
  const spank_err_t got = spank_getenv(spank, copies[which], values[which], MostOption);
  // A longer one is cut: the daemon knows no dataset of its last name.
  return got == ESPANK_SUCCESS || got == ESPANK_NOSPACE ? values[which] : NULL;
}

static void log_line(const char* line) {
  slurm_spank_log("spark-stage: %s", line);
}

static void log_failure(const char* node, const Failure* failure) {
  const char* separator = *failure->hint == '\0' ? "" : " - ";
  slurm_spank_log("spark-stage: %s: %s%s%s", node, failure->what, separator, failure->hint);
}

int slurm_spank_init(spank_t spank, int argc, char* argv[]) {
  (void)argc;
  (void)argv;
  for (int at = 0; at < OptionCount; ++at) spank_option_register(spank, &options[at]);
  return 0;
}

static int check_option(const Daemon* daemon, int which, Failure* failure) {
  const bool is_output = which == OptionStageOut;
  NameList names;
  if (given[which] == NULL) return 0;
  const int parsed = is_output ? parse_outputs(given[which], &names, failure)
                               : parse_names(options[which].name, given[which], &names, failure);
  if (parsed != 0) return -1;
  const Wait wait = wait_for_ms(SubmitMs, -1);
  const int result =
      is_output ? check_outputs(daemon, &names, &wait, failure) : check_names(daemon, &names, &wait, failure);
  free_names(&names);
  return result;
}

static int check_submission(int argc, char** argv, Failure* failure) {
  Daemon daemon;
  int result = read_settings(argc, argv, getenv("SLURMD_NODENAME"), &daemon, failure);
  for (int which = 0; which < OptionCount && result == 0; ++which)
    result = check_option(&daemon, which, failure);
  return result;
}

// In srun, sbatch and salloc: reports certain failures before the job is queued.
int slurm_spank_init_post_opt(spank_t spank, int argc, char* argv[]) {
  (void)spank;
  if (given[OptionStage] == NULL && given[OptionPrefetch] == NULL && given[OptionStageOut] == NULL) return 0;
  const spank_context_t context = spank_context();
  if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR) return 0;  // a failure there drains the node
  Failure failure;
  if (check_submission(argc, argv, &failure) == 0) return 0;
  slurm_error("spark-stage: %s%s%s", failure.what, *failure.hint == '\0' ? "" : " - ", failure.hint);
  exit(EXIT_FAILURE);  // of srun, sbatch or salloc, before anything is queued
}

// Waits only until the request is accepted.
static int request_detached(const Daemon* daemon, int which, const char* value, const JobTag* job,
                            const Wait* wait, Failure* failure) {
  NameList names;
  if (parse_names(options[which].name, value, &names, failure) != 0) return -1;
  char* id = request_staging(daemon, &names, job, which == OptionPrefetch, wait, failure);
  free_names(&names);
  free(id);
  return id == NULL ? -1 : 0;
}

static JobTag job_of(spank_t spank) {
  JobTag job = {0};
  spank_get_item(spank, S_JOB_ID, &job.id);
  return job;
}

// The first task of this node reports for all of them.
static int task_of(spank_t spank) {
  int task = 0;
  spank_get_item(spank, S_TASK_ID, &task);
  return task;
}

// Only starts the staging, so that it runs while Slurm starts the job. The task's hook reports failures.
int slurm_spank_job_prolog(spank_t spank, int argc, char* argv[]) {
  const Wait wait = wait_for_ms(HookMs, -1);
  Daemon daemon;
  Failure failure;
  const char* wanted[] = {option_of(spank, OptionStage), option_of(spank, OptionPrefetch)};
  if (wanted[OptionStage] == NULL && wanted[OptionPrefetch] == NULL) return 0;
  if (read_settings(argc, argv, getenv("SLURMD_NODENAME"), &daemon, &failure) != 0) {
    log_failure("prolog", &failure);
    return 0;
  }
  JobTag job = job_of(spank);
  job.user = getenv("SLURM_JOB_USER");
  job.nodes = getenv("SLURM_NODELIST");  // Slurm 22.05 has no SLURM_JOB_NODELIST in a prolog
  for (int which = OptionStage; which <= OptionPrefetch; ++which) {
    if (wanted[which] != NULL && request_detached(&daemon, which, wanted[which], &job, &wait, &failure) != 0)
      log_failure(daemon.node, &failure);
  }
  return 0;
}

// The output of the job's last step may be sent now. The daemon sends it while the node may run another job.
static void send_outputs_of(spank_t spank, const Daemon* daemon, const Wait* wait) {
  const char* wanted = option_of(spank, OptionStageOut);
  NameList outputs;
  Failure failure;
  if (wanted == NULL) return;
  const int parsed = parse_outputs(wanted, &outputs, &failure);
  if (parsed != 0 || send_outputs(daemon, &outputs, wait, &failure) != 0) log_failure(daemon->node, &failure);
  if (parsed == 0) free_names(&outputs);
}

int slurm_spank_job_epilog(spank_t spank, int argc, char* argv[]) {
  const Wait wait = wait_for_ms(HookMs, -1);
  Daemon daemon;
  Failure failure;
  const bool wanted = option_of(spank, OptionStage) != NULL || option_of(spank, OptionPrefetch) != NULL;
  if (read_settings(argc, argv, getenv("SLURMD_NODENAME"), &daemon, &failure) != 0) return 0;
  const uint32_t job = job_of(spank).id;
  send_outputs_of(spank, &daemon, &wait);
  if (!take_mark(daemon.socket, job) && !wanted) return 0;
  if (release_job(&daemon, job, &wait, &failure) != 0) log_failure(daemon.node, &failure);
  return 0;
}

static int set_variable(void* spank, const char* name, const char* value, Failure* failure) {
  if (spank_setenv(spank, name, value, 1) == ESPANK_SUCCESS) return 0;
  return fail_with(failure, "failed", "", "the variable %s of the step could not be set", name);
}

static bool get_variable(void* spank, const char* name, char* value, size_t size) {
  const spank_err_t got = spank_getenv(spank, name, value, (int)size);
  if (got == ESPANK_NOSPACE) value[size - 1] = '\0';
  return got == ESPANK_SUCCESS || got == ESPANK_NOSPACE;
}

static void unset_variable(void* spank, const char* name) {
  spank_unsetenv(spank, name);
}

static Environment environment_of(spank_t spank) {
  return (Environment){.set = set_variable, .get = get_variable, .unset = unset_variable, .step = spank};
}

// Owned by the caller; NULL: unknown.
static char* user_of(spank_t spank) {
  uid_t uid = 0;
  if (spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS) return NULL;
  const struct passwd* user = getpwuid(uid);
  return user == NULL ? NULL : strdup(user->pw_name);
}

static TaskId task_id_of(spank_t spank) {
  TaskId id = {.job = job_of(spank).id};
  spank_get_item(spank, S_JOB_STEPID, &id.step);
  spank_get_item(spank, S_TASK_GLOBAL_ID, &id.task);
  return id;
}

// What the task's privileged hook leaves for the hook that runs as the user, in the same process.
static struct {
  StagedList staged;
  int mark;  // open_task_mark()
} for_user = {.mark = -1};

static int stage_for_task(spank_t spank, const Daemon* daemon, const char* wanted, Failure* failure) {
  Staging staging = {
      .daemon = *daemon,
      .job = job_of(spank),
      .timings = {.first_answer_ms = FirstAnswerMs, .reconnect_ms = ReconnectMs, .retry_ms = RetryMs}};
  if (parse_names(options[OptionStage].name, wanted, &staging.names, failure) != 0) return -1;
  char* user = user_of(spank);
  staging.job.user = user;
  char nodes[MostNodeList] = "";
  if (spank_getenv(spank, "SLURM_JOB_NODELIST", nodes, sizeof nodes) == ESPANK_SUCCESS)
    staging.job.nodes = nodes;
  staging.job.process = getppid();  // slurmstepd, which runs as long as the step
  Cancellation cancellation = watch_cancellation();
  staging.wake_fd = cancellation.fd;
  // proctrack/linuxproc does not signal processes named like slurmstepd, so scancel would not reach this one.
  char own_name[16] = "";
  prctl(PR_GET_NAME, own_name);
  prctl(PR_SET_NAME, "spark-stage");
  Report report = start_report(daemon->node, task_of(spank) == 0 ? log_line : NULL);
  StagedList staged = {0};
  const Environment environment = environment_of(spank);
  int result = stage_and_wait(&staging, &report, &staged, failure);
  if (result == 0) result = show_views(daemon->socket, &staged, failure);
  if (result == 0) result = set_dataset_variables(&environment, &staging.names, &staged, failure);
  prctl(PR_SET_NAME, own_name);
  if (result == 0 && has_hub_links(&staged) && wants_hub_links(&environment)) {
    for_user.staged = staged;
    for_user.mark = open_task_mark(daemon->socket, task_id_of(spank));
  } else {
    free_staged(&staged);
  }
  free_names(&staging.names);
  free(user);
  end_watch(&cancellation);
  return result;
}

// Fails if an output is missing on this node: the job would lose its data.
static int offer_outputs(spank_t spank, const Daemon* daemon, const char* wanted, Failure* failure) {
  NameList outputs;
  if (parse_outputs(wanted, &outputs, failure) != 0) return -1;
  const Wait wait = wait_for_restart_ms(FirstAnswerMs, HookMs, -1);
  const Environment environment = environment_of(spank);
  const int result = set_output_variables(&environment, daemon, &outputs, &wait, failure);
  free_names(&outputs);
  return result;
}

// The data belongs to the next phase, so a failure is logged and the step runs without it.
static void prefetch_for_step(spank_t spank, const Daemon* daemon, const char* wanted) {
  if (task_of(spank) != 0) return;
  const Wait wait = wait_for_ms(HookMs, -1);
  Failure failure;
  JobTag job = job_of(spank);
  job.process = getppid();
  if (request_detached(daemon, OptionPrefetch, wanted, &job, &wait, &failure) != 0)
    log_failure(daemon->node, &failure);
}

// The only hook in which Slurm can wait without harm: a failure ends only the task.
int slurm_spank_task_init_privileged(spank_t spank, int argc, char* argv[]) {
  const char* wanted = option_of(spank, OptionStage);
  const char* next = option_of(spank, OptionPrefetch);
  const char* output = option_of(spank, OptionStageOut);
  if (wanted == NULL && next == NULL && output == NULL) return 0;
  const Environment environment = environment_of(spank);
  drop_inherited_hub_links(&environment);
  Daemon daemon;
  Failure failure;
  int result = read_settings(argc, argv, getenv("SLURMD_NODENAME"), &daemon, &failure);
  if (result == 0 && output != NULL) result = offer_outputs(spank, &daemon, output, &failure);
  if (result == 0) mark_job(daemon.socket, job_of(spank).id);
  if (result == 0 && next != NULL) prefetch_for_step(spank, &daemon, next);
  if (result == 0 && wanted != NULL) result = stage_for_task(spank, &daemon, wanted, &failure);
  if (result == 0) return 0;
  if (task_of(spank) == 0) log_failure(daemon.node, &failure);
  _exit(EXIT_FAILURE);  // of the task, which slurmstepd has forked already
}

// As the user, after the hook above: the folder is the user's. A model can still be loaded by its path, so a
// failure is reported and the task runs.
int slurm_spank_task_init(spank_t spank, int argc, char* argv[]) {
  (void)argc;
  (void)argv;
  char temporary[MostHubFolder] = "", folder[MostHubFolder] = "";
  Failure failure;
  if (for_user.staged.count == 0) return 0;
  if (spank_getenv(spank, "TMPDIR", temporary, sizeof temporary) != ESPANK_SUCCESS) *temporary = '\0';
  int result = make_hub_links(&for_user.staged, temporary, folder, &failure);
  free_staged(&for_user.staged);
  const size_t length = strlen(folder);
  // Without the mark nothing would delete the folder after the task.
  if (result == 0 && (for_user.mark < 0 || write(for_user.mark, folder, length) != (ssize_t)length)) {
    remove_hub_links(folder);
    result = fail_with(&failure, "failed", "load the models by their paths",
                       "the folder %s could not be noted for its deletion", folder);
  }
  const Environment environment = environment_of(spank);
  if (result == 0) result = set_hub_variables(&environment, folder, &failure);
  if (result != 0) log_failure("HF_HUB_CACHE", &failure);
  return 0;
}

static void remove_hub_links_of(spank_t spank, const char* socket) {
  char folder[MostHubFolder];
  Rights user = {0};
  gid_t* groups = NULL;
  int count = 0;
  take_task_mark(socket, task_id_of(spank), folder, sizeof folder);
  const bool is_known = spank_get_item(spank, S_JOB_UID, &user.uid) == ESPANK_SUCCESS &&
                        spank_get_item(spank, S_JOB_GID, &user.gid) == ESPANK_SUCCESS;
  if (*folder == '\0' || !is_known) return;
  if (spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &groups, &count) == ESPANK_SUCCESS && count > 0) {
    user.groups = groups;
    user.group_count = (size_t)count;
  }
  if (remove_hub_links_as(&user, folder) != 0)
    slurm_spank_log("spark-stage: the task has left files in %s, its HF_HUB_CACHE; delete them", folder);
}

// Reports unsent checkpoints while the user still sees the step's output. The epilog handles later ones.
int slurm_spank_task_exit(spank_t spank, int argc, char* argv[]) {
  const char* wanted = option_of(spank, OptionStageOut);
  const Wait wait = wait_for_ms(LookMs, -1);
  Daemon daemon;
  Failure failure;
  NameList outputs;
  if (wanted == NULL && option_of(spank, OptionStage) == NULL) return 0;
  if (read_settings(argc, argv, getenv("SLURMD_NODENAME"), &daemon, &failure) != 0) return 0;
  remove_hub_links_of(spank, daemon.socket);
  if (wanted == NULL || task_of(spank) != 0) return 0;
  if (parse_outputs(wanted, &outputs, &failure) != 0) return 0;
  report_unsent(&daemon, &outputs, &wait, log_line);
  free_names(&outputs);
  return 0;
}
