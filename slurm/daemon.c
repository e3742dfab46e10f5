#include "slurm/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slurm/http.h"

const char kUnreachable[] = "unreachable";

void describe_unreachable(const Daemon* daemon, int error, Failure* failure) {
  if (error == ECANCELED) {
    fail_with(failure, "cancelled", "", "the step is being cancelled");
    return;
  }
  fail_with(failure, kUnreachable,
            "on that node: systemctl start spark-staged; journalctl -u spark-staged says why it stopped",
            "spark-staged on %s does not answer on %s: %s", daemon->node, daemon->socket,
            error == ETIMEDOUT ? "timed out" : strerror(error));
}

// The body of a 2xx answer, owned by the caller; NULL on failure.
static char* ask(const Daemon* daemon, const char* method, const char* target, const char* body,
                 const Wait* wait, Failure* failure) {
  const HttpRequest request = {.socket = daemon->socket, .method = method, .target = target, .body = body};
  HttpAnswer answer;
  if (http_send(&answer, &request, wait) != 0) {
    describe_unreachable(daemon, errno, failure);
    return NULL;
  }
  char* text = http_body(&answer, wait);
  if (text == NULL) describe_unreachable(daemon, errno, failure);
  http_close(&answer);
  if (text != NULL && answer.status / 100 != 2) {
    json_read_error(text, answer.status, failure);
    free(text);
    text = NULL;
  }
  return text;
}

char* request_staging(const Daemon* daemon, const NameList* names, const JobTag* job, bool prefetch,
                      const Wait* wait, Failure* failure) {
  char* body = json_staging(names, job, prefetch);
  if (body == NULL) {
    fail_with(failure, "failed", "", "no memory for the request");
    return NULL;
  }
  char* answer = ask(daemon, "POST", "/v1/stagings", body, wait, failure);
  free(body);
  if (answer == NULL) return NULL;
  char* key = json_job_key(answer);
  free(answer);
  if (key == NULL)
    fail_with(failure, "failed", "are spark-stage and spark-stage-slurm of one version?",
              "spark-staged on %s accepted the request without a job", daemon->node);
  return key;
}

int release_job(const Daemon* daemon, uint32_t job, const Wait* wait, Failure* failure) {
  char target[64];
  snprintf(target, sizeof target, "/v1/leases/job:slurm:%u", (unsigned)job);
  char* answer = ask(daemon, "DELETE", target, NULL, wait, failure);
  free(answer);
  return answer != NULL || strcmp(failure->kind, "not_found") == 0 ? 0 : -1;
}

int request_final(const Daemon* daemon, const char* output, const Wait* wait, Failure* failure) {
  char target[128];
  snprintf(target, sizeof target, "/v1/outputs/%s/send", output);
  char* answer = ask(daemon, "POST", target, "{\"final\":true}", wait, failure);
  free(answer);
  return answer == NULL ? -1 : 0;
}

char* read_output(const Daemon* daemon, const char* output, const Wait* wait, Failure* failure) {
  char target[128];
  snprintf(target, sizeof target, "/v1/outputs/%s", output);
  return ask(daemon, "GET", target, NULL, wait, failure);
}

char* read_config(const Daemon* daemon, const Wait* wait, Failure* failure) {
  return ask(daemon, "GET", "/v1/config", NULL, wait, failure);
}

// Gets the daemon's own message about an unknown name, which suggests the nearest match.
static int let_refuse(const Daemon* daemon, char* name, const Wait* wait, Failure* failure) {
  const NameList one = {.count = 1, .names = &name};
  char* id = request_staging(daemon, &one, NULL, false, wait, failure);
  free(id);
  if (id != NULL) return 0;  // configured in the meantime
  return strcmp(failure->kind, "not_found") == 0 || strcmp(failure->kind, "invalid") == 0 ? -1 : 0;
}

int check_names(const Daemon* daemon, const NameList* names, const Wait* wait, Failure* failure) {
  char* config = read_config(daemon, wait, failure);
  if (config == NULL) return 0;  // no daemon here, or the user may not connect to it
  int result = 0;
  for (size_t at = 0; at < names->count && result == 0; ++at) {
    if (!json_config_has(config, names->names[at]))
      result = let_refuse(daemon, names->names[at], wait, failure);
  }
  free(config);
  return result;
}
