#include "slurm/settings.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char kDefaultSocket[] = "/run/spark-stage/api.sock";

static void read_node(const char* node, Daemon* daemon) {
  // The name becomes part of a path, so it must not point to another folder.
  if (node != NULL && *node != '\0' && *node != '.' && strchr(node, '/') == NULL) {
    snprintf(daemon->node, sizeof daemon->node, "%s", node);
    return;
  }
  if (gethostname(daemon->node, sizeof daemon->node) != 0) strcpy(daemon->node, "localhost");
  daemon->node[sizeof daemon->node - 1] = '\0';
  daemon->node[strcspn(daemon->node, ".")] = '\0';
}

static int read_socket(const char* path, Daemon* daemon, Failure* failure) {
  const char* place = strstr(path, "%n");
  const int before = place == NULL ? (int)strlen(path) : (int)(place - path);
  const int length = snprintf(daemon->socket, sizeof daemon->socket, "%.*s%s%s", before, path,
                              place == NULL ? "" : daemon->node, place == NULL ? "" : place + 2);
  if (*path == '/' && (size_t)length < sizeof daemon->socket) return 0;
  return fail_with(failure, "invalid", "give the absolute path of a socket, at most 107 bytes",
                   "plugstack.conf has socket=%s", path);
}

int read_settings(int count, char** arguments, const char* node, Daemon* daemon, Failure* failure) {
  static const char socket[] = "socket=";
  snprintf(daemon->socket, sizeof daemon->socket, "%s", kDefaultSocket);
  read_node(node, daemon);
  for (int at = 0; at < count; ++at) {
    if (strncmp(arguments[at], socket, sizeof socket - 1) != 0)
      return fail_with(failure, "invalid", "the only argument is socket=PATH",
                       "plugstack.conf has an argument of spank_spark_stage.so that is not known: %s",
                       arguments[at]);
    if (read_socket(arguments[at] + sizeof socket - 1, daemon, failure) != 0) return -1;
  }
  return 0;
}
