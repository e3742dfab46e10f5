#include "slurm/mark.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MostPath = 160 };  // a socket path is shorter than 108 characters

static void folder_of_marks(const char* socket, char* path) {
  const char* slash = strrchr(socket, '/');
  snprintf(path, MostPath, "%.*s/slurm", (int)(slash - socket), socket);
}

static void path_of_mark(const char* socket, uint32_t job, char* path) {
  folder_of_marks(socket, path);
  const size_t length = strlen(path);
  snprintf(path + length, MostPath - length, "/%u", (unsigned)job);
}

void mark_job(const char* socket, uint32_t job) {
  char path[MostPath];
  folder_of_marks(socket, path);
  mkdir(path, 0700);
  path_of_mark(socket, job, path);
  const int mark = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (mark >= 0) close(mark);
}

bool take_mark(const char* socket, uint32_t job) {
  char path[MostPath];
  path_of_mark(socket, job, path);
  return unlink(path) == 0;
}
