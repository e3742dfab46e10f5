#include "slurm/outputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slurm/json.h"

static const char kUsage[] = "name outputs of the configuration, separated by commas";
static const char kNotConfigured[] = "not_found";

// The same rule as in the configuration: a name becomes part of a request's path.
static bool is_output_name(const char* name) {
  for (const char* at = name; *at != '\0'; ++at) {
    const bool is_letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
    const bool is_digit = *at >= '0' && *at <= '9';
    if (!is_letter && !is_digit && strchr("._-", *at) == NULL) return false;
  }
  return true;
}

int parse_outputs(const char* text, NameList* list, Failure* failure) {
  if (parse_names("stage-out", text, list, failure) != 0) return -1;
  for (size_t at = 0; at < list->count; ++at) {
    if (is_output_name(list->names[at])) continue;
    fail_with(failure, "invalid", kUsage, "--stage-out=%s is not the name of an output", list->names[at]);
    free_names(list);
    return -1;
  }
  return 0;
}

int set_output_variables(const Environment* environment, const Daemon* daemon, const NameList* outputs,
                         const Wait* wait, Failure* failure) {
  char* config = read_config(daemon, wait, failure);
  if (config == NULL) return -1;
  int result = 0;
  for (size_t at = 0; at < outputs->count && result == 0; ++at) {
    const char* output = outputs->names[at];
    char* folder = json_config_output(config, output);
    if (folder == NULL)
      result = fail_with(failure, kNotConfigured, "the section `outputs` of its configuration has to name it",
                         "there is no output '%s' in the configuration of %s", output, daemon->node);
    else if (environment != NULL)
      result = set_output_variable(environment, output, folder, failure);
    free(folder);
  }
  free(config);
  return result;
}

int check_outputs(const Daemon* daemon, const NameList* outputs, const Wait* wait, Failure* failure) {
  const int result = set_output_variables(NULL, daemon, outputs, wait, failure);
  // Otherwise there is no daemon here, or the user may not connect to it.
  return result != 0 && strcmp(failure->kind, kNotConfigured) == 0 ? -1 : 0;
}

int send_outputs(const Daemon* daemon, const NameList* outputs, const Wait* wait, Failure* failure) {
  int result = 0;
  for (size_t at = 0; at < outputs->count; ++at) {
    Failure this_one;
    if (request_final(daemon, outputs->names[at], wait, &this_one) == 0 || result != 0) continue;
    *failure = this_one;
    result = -1;
  }
  return result;
}

void report_unsent(const Daemon* daemon, const NameList* outputs, const Wait* wait,
                   void (*show)(const char* line)) {
  for (size_t at = 0; at < outputs->count; ++at) {
    Failure ignored;
    char line[1024];
    char* answer = read_output(daemon, outputs->names[at], wait, &ignored);
    char* unsent = answer == NULL ? NULL : json_unsent(answer);
    if (unsent != NULL) {
      snprintf(line, sizeof line, "%s: output %s: %s", daemon->node, outputs->names[at], unsent);
      show(line);
    }
    free(unsent);
    free(answer);
  }
}
