#include "slurm/json.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_object* member(json_object* object, const char* key) {
  json_object* found = NULL;
  if (!json_object_is_type(object, json_type_object)) return NULL;
  return json_object_object_get_ex(object, key, &found) ? found : NULL;
}

// NULL if the member is missing or not a string.
static const char* text_of(json_object* object, const char* key) {
  json_object* found = member(object, key);
  return json_object_is_type(found, json_type_string) ? json_object_get_string(found) : NULL;
}

static void copy_text(char* to, size_t size, json_object* object, const char* key) {
  const char* text = text_of(object, key);
  snprintf(to, size, "%s", text == NULL ? "" : text);
}

// Copies a text of the object and releases the object; NULL if there is no text.
static char* take_text(json_object* object, const char* text) {
  char* copy = text == NULL ? NULL : strdup(text);
  json_object_put(object);
  return copy;
}

static json_object* job_object(const JobTag* job) {
  json_object* tag = json_object_new_object();
  char id[16];
  snprintf(id, sizeof id, "%u", (unsigned)job->id);
  json_object_object_add(tag, "system", json_object_new_string("slurm"));
  json_object_object_add(tag, "id", json_object_new_string(id));
  if (job->user != NULL) json_object_object_add(tag, "user", json_object_new_string(job->user));
  if (job->nodes != NULL) json_object_object_add(tag, "nodes", json_object_new_string(job->nodes));
  if (job->process > 0) {
    json_object* processes = json_object_new_array();
    json_object_array_add(processes, json_object_new_int64(job->process));
    json_object_object_add(tag, "processes", processes);
  }
  return tag;
}

char* json_staging(const NameList* names, const JobTag* job, bool prefetch) {
  json_object* body = json_object_new_object();
  json_object* datasets = json_object_new_array();
  for (size_t at = 0; at < names->count; ++at)
    json_object_array_add(datasets, json_object_new_string(names->names[at]));
  json_object_object_add(body, "datasets", datasets);
  if (job != NULL) json_object_object_add(body, "job", job_object(job));
  if (prefetch) json_object_object_add(body, "prefetch", json_object_new_boolean(true));
  json_object* now = json_object_new_array();
  for (size_t at = 0; names->now != NULL && at < names->count; ++at)
    if (names->now[at]) json_object_array_add(now, json_object_new_string(names->names[at]));
  if (json_object_array_length(now) > 0)
    json_object_object_add(body, "now", now);
  else
    json_object_put(now);
  if (job != NULL) json_object_object_add(body, "wait_s", NULL);  // until the source is there
  return take_text(body, json_object_to_json_string_ext(body, JSON_C_TO_STRING_PLAIN));
}

char* json_job_key(const char* answer) {
  json_object* job = json_tokener_parse(answer);
  return take_text(job, text_of(job, "key"));
}

static void read_failure(json_object* error, Failure* failure) {
  copy_text(failure->kind, sizeof failure->kind, error, "kind");
  copy_text(failure->what, sizeof failure->what, error, "what");
  copy_text(failure->hint, sizeof failure->hint, error, "hint");
}

void json_read_error(const char* answer, int status, Failure* failure) {
  json_object* object = json_tokener_parse(answer);
  read_failure(member(object, "error"), failure);
  json_object_put(object);
  if (*failure->what == '\0')
    fail_with(failure, "failed", "journalctl -u spark-staged has more",
              "spark-staged answered with HTTP status %d", status);
}

static void read_progress(json_object* event, Progress* progress) {
  copy_text(progress->dataset, sizeof progress->dataset, event, "dataset");
  copy_text(progress->phase, sizeof progress->phase, event, "phase");
  copy_text(progress->reason, sizeof progress->reason, event, "reason");
  progress->bytes_done = json_object_get_int64(member(event, "bytes_done"));
  progress->bytes_total = json_object_get_int64(member(event, "bytes_total"));
  progress->bytes_per_second = json_object_get_double(member(event, "bytes_per_second"));
  json_object* eta = member(event, "eta_s");
  progress->eta_s = eta == NULL ? -1 : json_object_get_double(eta);
}

static void read_staged(json_object* result, StagedList* staged) {
  json_object* all = member(result, "datasets");
  const bool is_list = json_object_is_type(all, json_type_array);
  *staged = (StagedList){.count = is_list ? json_object_array_length(all) : 0, .all = json_object_get(all)};
}

const char* staged_text(const StagedList* staged, size_t at, const char* key) {
  return text_of(json_object_array_get_idx(staged->all, at), key);
}

bool is_live(const StagedList* staged, size_t at) {
  const char* state = staged_text(staged, at, "state");
  return state != NULL && strcmp(state, "live") == 0;
}

EventKind json_read_event(const char* line, Progress* progress, StagedList* staged, Failure* failure) {
  json_object* event = json_tokener_parse(line);
  const char* kind = text_of(event, "event");
  EventKind result = EventOther;
  if (kind != NULL && strcmp(kind, "progress") == 0) {
    read_progress(event, progress);
    result = EventProgress;
  } else if (kind != NULL && strcmp(kind, "done") == 0) {
    read_staged(member(event, "result"), staged);
    result = EventDone;
  } else if (kind != NULL && strcmp(kind, "failed") == 0) {
    read_failure(member(event, "error"), failure);
    result = EventFailed;
  }
  json_object_put(event);
  return result;
}

void free_staged(StagedList* staged) {
  json_object_put(staged->all);
  *staged = (StagedList){0};
}

bool json_config_has(const char* config, const char* name) {
  json_object* object = json_tokener_parse(config);
  const size_t length = strcspn(name, ":");
  char* key = strndup(name, length);
  json_object* known = member(object, name[length] == ':' ? "volumes" : "datasets");
  const bool found = key != NULL && member(known, key) != NULL;
  free(key);
  json_object_put(object);
  return found;
}

char* json_config_output(const char* config, const char* name) {
  json_object* object = json_tokener_parse(config);
  return take_text(object, text_of(member(member(object, "outputs"), name), "path"));
}

char* json_unsent(const char* output) {
  json_object* object = json_tokener_parse(output);
  return take_text(object, text_of(object, "unsent"));
}
