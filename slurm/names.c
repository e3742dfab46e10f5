#include "slurm/names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char kUsage[] = "name datasets of the configuration or VOLUME:PATH, separated by commas";

// list->count: it is not listed.
static size_t index_of(const NameList* list, const char* name) {
  size_t at = 0;
  while (at < list->count && strcmp(list->names[at], name) != 0) ++at;
  return at;
}

static int check_name(const char* option, const char* name, Failure* failure) {
  if (*name == '\0')
    return fail_with(failure, "invalid", kUsage, "--%s names a dataset with an empty name", option);
  // A name appears in logs and on terminals.
  for (const char* at = name; *at != '\0'; ++at) {
    if ((unsigned char)*at < ' ' || *at == 0x7f)
      return fail_with(failure, "invalid", kUsage, "--%s names a dataset with a control character", option);
  }
  const char* colon = strchr(name, ':');
  if (colon == name)
    return fail_with(failure, "invalid", kUsage, "--%s=%s has no volume before the colon", option, name);
  if (colon != NULL && colon[1] == '\0')
    return fail_with(failure, "invalid", kUsage, "--%s=%s has no path after the colon", option, name);
  return 0;
}

// Rejects two names with the same variable: a task would find only one of them.
static int check_variable(const char* option, const NameList* list, const char* name, Failure* failure) {
  char* variable = environment_name(name);
  int result = 0;
  for (size_t at = 0; at < list->count && result == 0; ++at) {
    char* other = environment_name(list->names[at]);
    if (variable != NULL && other != NULL && strcmp(variable, other) == 0) {
      result = fail_with(failure, "invalid", "name one of them in another step",
                         "--%s: %s and %s would both be %s", option, list->names[at], name, variable);
    }
    free(other);
  }
  free(variable);
  return result;
}

static size_t count_commas(const char* text) {
  size_t count = 0;
  for (; *text != '\0'; ++text) count += *text == ',';
  return count;
}

// Removes ":now". Only a job that reads the data at once has use for it.
static bool take_suffix(const char* option, char* name) {
  static const char suffix[] = ":now";
  char* colon = strrchr(name, ':');
  if (colon == NULL || strcmp(colon, suffix) != 0 || strcmp(option, "stage") != 0) return false;
  *colon = '\0';
  return true;
}

// Takes ownership of the name.
static int add_name(const char* option, char* name, NameList* list, Failure* failure) {
  if (name == NULL) return fail_with(failure, "failed", "", "--%s: no memory", option);
  const bool now = take_suffix(option, name);
  const bool fits = check_name(option, name, failure) == 0;
  const size_t at = fits ? index_of(list, name) : list->count;
  const bool listed = at < list->count;
  if (listed && !now) list->now[at] = false;  // once without ":now": all of it is needed
  if (fits && !listed && check_variable(option, list, name, failure) == 0) {
    list->names[at] = name;
    list->now[at] = now;
    ++list->count;
    return 0;
  }
  free(name);
  return listed ? 0 : -1;
}

int parse_names(const char* option, const char* text, NameList* list, Failure* failure) {
  list->count = 0;
  const size_t most = count_commas(text) + 1;
  list->names = calloc(most, sizeof *list->names);
  list->now = calloc(most, sizeof *list->now);
  if (list->names == NULL || list->now == NULL) {
    free_names(list);
    return fail_with(failure, "failed", "", "--%s: no memory", option);
  }
  for (const char* begin = text;;) {
    const size_t length = strcspn(begin, ",");
    if (add_name(option, strndup(begin, length), list, failure) != 0) {
      free_names(list);
      return -1;
    }
    if (begin[length] == '\0') return 0;
    begin += length + 1;
  }
}

void free_names(NameList* list) {
  for (size_t at = 0; at < list->count; ++at) free(list->names[at]);
  free(list->names);
  free(list->now);
  list->names = NULL;
  list->now = NULL;
  list->count = 0;
}

char* environment_name(const char* dataset) {
  static const char prefix[] = "SPARK_STAGE_";
  const size_t length = strlen(dataset);
  char* name = malloc(sizeof prefix + length);
  if (name == NULL) return NULL;
  memcpy(name, prefix, sizeof prefix);
  char* out = name + sizeof prefix - 1;
  for (size_t at = 0; at < length; ++at) {
    const char c = dataset[at];
    const bool lower = c >= 'a' && c <= 'z';
    const bool kept = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    *out++ = lower ? (char)(c - 'a' + 'A') : kept ? c : '_';
  }
  *out = '\0';
  return name;
}
