#include "slurm/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "slurm/wait.h"

enum { QuietMs = 1000, EveryMs = 5000 };

Report start_report(const char* node, void (*say)(const char* line)) {
  return (Report){.say = say, .node = node, .began_ms = now_ms()};
}

static void describe_bytes(double bytes, char* text, size_t size) {
  static const char* const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < sizeof units / sizeof *units; ++unit) bytes /= 1000;
  snprintf(text, size, "%.*f %s", unit > 0 && bytes < 100 ? 1 : 0, bytes, units[unit]);
}

static void describe_time(double seconds, char* text, size_t size) {
  const long whole = seconds > 1e9 ? 1000000000L : (long)(seconds + 0.999);
  if (whole < 120) {
    snprintf(text, size, "%ld s", whole);
  } else if (whole < 7200) {
    snprintf(text, size, "%ld min", (whole + 59) / 60);
  } else {
    snprintf(text, size, "%ld h %02ld min", whole / 3600, whole % 3600 / 60);
  }
}

void describe_progress(const char* node, const Progress* progress, char* text, size_t size) {
  if (progress->bytes_total <= 0 || strcmp(progress->phase, "walking") == 0 ||
      strcmp(progress->phase, "queued") == 0) {
    const char* colon = *progress->reason == '\0' ? "" : ": ";
    snprintf(text, size, "%s: %s: %s%s%s", node, progress->dataset, progress->phase, colon, progress->reason);
    return;
  }
  const double done = (double)progress->bytes_done, total = (double)progress->bytes_total;
  char done_text[32], total_text[32], rate[48] = "", left[48] = "", number[32];
  describe_bytes(done, done_text, sizeof done_text);
  describe_bytes(total, total_text, sizeof total_text);
  describe_bytes(progress->bytes_per_second, number, sizeof number);
  if (progress->bytes_per_second >= 1) snprintf(rate, sizeof rate, ", %s/s", number);
  describe_time(progress->eta_s, number, sizeof number);
  if (progress->eta_s >= 0) snprintf(left, sizeof left, ", %s left", number);
  const char* colon = *progress->reason == '\0' ? "" : ": ";
  snprintf(text, size, "%s: %s: %s %d %% (%s of %s%s%s)%s%s", node, progress->dataset, progress->phase,
           (int)(done / total * 100), done_text, total_text, rate, left, colon, progress->reason);
}

static void say(Report* report, const char* line) {
  if (report->say == NULL) return;
  report->say(line);
  report->has_said = true;
  report->said_ms = now_ms();
}

void report_progress(Report* report, const Progress* progress) {
  const bool stalled = strcmp(progress->phase, "stalled") == 0;
  const int64_t now = now_ms();
  const bool due = report->has_said ? now - report->said_ms >= EveryMs : now - report->began_ms >= QuietMs;
  if (!due && stalled == report->was_stalled) return;
  report->was_stalled = stalled;
  char line[1024];
  describe_progress(report->node, progress, line, sizeof line);
  say(report, line);
}

void report_note(Report* report, const char* format, ...) {
  char line[MostWhat + 128];
  const int length = snprintf(line, 128, "%s: ", report->node);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line + length, MostWhat, format, arguments);
  va_end(arguments);
  say(report, line);
}

void report_end(Report* report) {
  if (!report->has_said) return;
  char line[256], time[32];
  describe_time((double)(now_ms() - report->began_ms) / 1000, time, sizeof time);
  snprintf(line, sizeof line, "%s: staged after %s", report->node, time);
  say(report, line);
}
