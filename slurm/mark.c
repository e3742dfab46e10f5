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

static void path_of_task(const char* socket, TaskId task, char* path) {
  folder_of_marks(socket, path);
  const size_t length = strlen(path);
  snprintf(path + length, MostPath - length, "/%u.%u.%u", (unsigned)task.job, (unsigned)task.step,
           (unsigned)task.task);
}

int open_task_mark(const char* socket, TaskId task) {
  char path[MostPath];
  path_of_task(socket, task, path);
  return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
}

void take_task_mark(const char* socket, TaskId task, char* text, size_t size) {
  char path[MostPath];
  path_of_task(socket, task, path);
  const int mark = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  const ssize_t got = mark < 0 ? 0 : read(mark, text, size - 1);
  text[got < 0 ? 0 : got] = '\0';
  if (mark < 0) return;
  close(mark);
  unlink(path);
}

bool take_mark(const char* socket, uint32_t job) {
  char path[MostPath];
  path_of_mark(socket, job, path);
  return unlink(path) == 0;
}
