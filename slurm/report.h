// Progress lines for the user while a step waits: at most one every five seconds, plus each stall and
// recovery.
#ifndef SPARK_SLURM_REPORT_H
#define SPARK_SLURM_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slurm/json.h"

typedef struct Report {
  void (*say)(const char* line);  // NULL: another task of the node reports
  const char* node;
  int64_t began_ms, said_ms;  // times from now_ms()
  bool has_said, was_stalled;
} Report;

Report start_report(const char* node, void (*say)(const char* line));
void report_progress(Report* report, const Progress* progress);
// Always printed.
void report_note(Report* report, const char* format, ...) __attribute__((format(printf, 2, 3)));
// All datasets are staged; printed only if the user was told about the wait.
void report_end(Report* report);

// "spark1: imagenet: copying 45 % (1.2 GB of 2.7 GB, 512 MB/s, 3 s left)"
void describe_progress(const char* node, const Progress* progress, char* text, size_t size);

#endif
