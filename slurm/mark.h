// Remembers the jobs that staged data in one of their steps. A job's epilog sees only the options of its
// submission, not those of an srun within the job.
#ifndef SPARK_SLURM_MARK_H
#define SPARK_SLURM_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The marks are next to the daemon's socket, so they are deleted with the daemon's runtime folder. A failure
// to create one only delays the cleanup: the daemon also ends a lease when it finds no process of the job.
void mark_job(const char* socket, uint32_t job);
// Removes the mark; true if there was one.
bool take_mark(const char* socket, uint32_t job);

// A task, also beyond its end: its hooks run in two processes.
typedef struct TaskId {
  uint32_t job, step, task;
} TaskId;
// A file for what the hook of the task's end has to know, to be written by the task; -1: there is none.
int open_task_mark(const char* socket, TaskId task);
// Reads and removes the file. Empty if there was none.
void take_task_mark(const char* socket, TaskId task, char* text, size_t size);

#endif
