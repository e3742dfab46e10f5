#include "slurm/staging.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slurm/http.h"

enum {
  RequestMs = 10000,  // limit for a request that the daemon answers immediately
  SilenceMs = 30000,  // limit without events, after which the request is repeated
  MostLosses = 5,     // the staging may be the reason why the daemon crashes, so retries are limited
};

typedef enum Outcome { OutcomeStaged, OutcomeSilent, OutcomeLost, OutcomeFailed } Outcome;

// A restart of the daemon, or waiting, may help.
static bool is_temporary(const Failure* failure) {
  return strcmp(failure->kind, kUnreachable) == 0 || strcmp(failure->kind, "unavailable") == 0;
}

static Outcome read_events(const Staging* staging, HttpAnswer* answer, Report* report, StagedList* staged,
                           Failure* failure) {
  for (;;) {
    const Wait wait = wait_for_ms(SilenceMs, staging->wake_fd);
    char* line = NULL;
    const int got = http_line(answer, &line, &wait);
    if (got < 0 && errno == ETIMEDOUT) return OutcomeSilent;
    if (got <= 0) {
      describe_unreachable(&staging->daemon, got == 0 ? ECONNRESET : errno, failure);
      return is_temporary(failure) ? OutcomeLost : OutcomeFailed;
    }
    Progress progress;
    const EventKind kind = json_read_event(line, &progress, staged, failure);
    free(line);
    if (kind == EventProgress) report_progress(report, &progress);
    if (kind == EventDone) return OutcomeStaged;
    if (kind == EventFailed) return is_temporary(failure) ? OutcomeLost : OutcomeFailed;
  }
}

static Outcome follow(const Staging* staging, const char* id, Report* report, StagedList* staged,
                      Failure* failure) {
  char target[128];
  snprintf(target, sizeof target, "/v1/jobs/%s/events", id);
  const HttpRequest request = {.socket = staging->daemon.socket, .method = "GET", .target = target};
  const Wait wait = wait_for_ms(RequestMs, staging->wake_fd);
  HttpAnswer answer;
  if (http_send(&answer, &request, &wait) != 0) {
    describe_unreachable(&staging->daemon, errno, failure);
    return is_temporary(failure) ? OutcomeLost : OutcomeFailed;
  }
  Outcome outcome = OutcomeLost;
  if (answer.status == 200) {
    outcome = read_events(staging, &answer, report, staged, failure);
  } else {  // the daemon was restarted after it accepted the job
    fail_with(failure, kUnreachable, "journalctl -u spark-staged has more", "spark-staged on %s lost job %s",
              staging->daemon.node, id);
  }
  http_close(&answer);
  return outcome;
}

// Requests the staging, then follows it. A repeated request joins the same staging.
static Outcome try_once(const Staging* staging, Report* report, StagedList* staged, bool* answered,
                        Failure* failure) {
  const Wait wait = wait_for_ms(RequestMs, staging->wake_fd);
  char* id = request_staging(&staging->daemon, &staging->names, &staging->job, false, &wait, failure);
  *answered = id != NULL;
  if (id == NULL) return is_temporary(failure) ? OutcomeLost : OutcomeFailed;
  const Outcome outcome = follow(staging, id, report, staged, failure);
  free(id);
  return outcome;
}

static void note_loss(Report* report, const Failure* failure, int64_t allowed_ms) {
  char note[MostWhat + 64];
  snprintf(note, sizeof note, "%s; trying again for %d s", failure->what, (int)(allowed_ms / 1000));
  report_note(report, note);
}

int stage_and_wait(const Staging* staging, Report* report, StagedList* staged, Failure* failure) {
  int64_t lost_at = now_ms(), allowed_ms = staging->timings.first_answer_ms;
  int losses = 0;
  for (bool noted = false;;) {
    bool answered = false;
    const Outcome outcome = try_once(staging, report, staged, &answered, failure);
    if (outcome == OutcomeStaged) {
      report_end(report);
      return 0;
    }
    if (outcome == OutcomeFailed) return -1;
    if (outcome != OutcomeSilent && answered && ++losses > MostLosses) return -1;
    if (answered) {
      lost_at = now_ms();
      allowed_ms = staging->timings.reconnect_ms;
      noted = false;
    }
    if (outcome == OutcomeSilent) continue;
    if (now_ms() - lost_at >= allowed_ms) return -1;
    if (!noted) note_loss(report, failure, allowed_ms);
    noted = true;
    const Wait wait = wait_for_ms(allowed_ms, staging->wake_fd);
    if (pause_for_ms(staging->timings.retry_ms, &wait) != 0 && errno == ECANCELED) {
      describe_unreachable(&staging->daemon, ECANCELED, failure);
      return -1;
    }
  }
}
