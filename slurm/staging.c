#include "slurm/staging.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slurm/http.h"

enum {
  RequestMs = 10000,  // limit for the first answer to a request
  SilenceMs = 30000,  // limit without events: the daemon repeats the last one every few seconds
};

// Lost: the connection broke. Gone: a restarted daemon does not know the job.
typedef enum Outcome { OutcomeStaged, OutcomeLost, OutcomeGone, OutcomeFailed } Outcome;

// A restart of the daemon may help.
static Outcome outcome_of(const Failure* failure) {
  return strcmp(failure->kind, kUnreachable) == 0 ? OutcomeLost : OutcomeFailed;
}

static Outcome read_events(const Staging* staging, HttpAnswer* answer, Report* report, int64_t* heard_ms,
                           StagedList* staged, Failure* failure) {
  for (;;) {
    const Wait wait = wait_for_ms(SilenceMs, staging->wake_fd);
    char* line = NULL;
    const int got = http_line(answer, &line, &wait);
    if (got <= 0) {
      describe_unreachable(&staging->daemon, got == 0 ? ECONNRESET : errno, failure);
      return outcome_of(failure);
    }
    *heard_ms = now_ms();
    Progress progress;
    const EventKind kind = json_read_event(line, &progress, staged, failure);
    free(line);
    if (kind == EventProgress) report_progress(report, &progress);
    if (kind == EventDone) return OutcomeStaged;
    if (kind == EventFailed) return OutcomeFailed;
  }
}

static Outcome follow(const Staging* staging, const char* job, Report* report, int64_t* heard_ms,
                      StagedList* staged, Failure* failure) {
  char target[128];
  snprintf(target, sizeof target, "/v1/jobs/%s/events", job);
  const HttpRequest request = {.socket = staging->daemon.socket, .method = "GET", .target = target};
  const Wait wait = wait_for_ms(RequestMs, staging->wake_fd);
  HttpAnswer answer;
  if (http_send(&answer, &request, &wait) != 0) {
    describe_unreachable(&staging->daemon, errno, failure);
    return outcome_of(failure);
  }
  Outcome outcome = OutcomeGone;
  if (answer.status == 200) outcome = read_events(staging, &answer, report, heard_ms, staged, failure);
  if (answer.status != 200 && answer.status != 404) {
    json_read_error("", answer.status, failure);
    outcome = OutcomeFailed;
  }
  http_close(&answer);
  return outcome;
}

static bool has_live(const StagedList* staged) {
  bool found = false;
  for (size_t at = 0; at < staged->count; ++at) found = found || is_live(staged, at);
  return found;
}

int stage_and_wait(const Staging* staging, Report* report, StagedList* staged, Failure* failure) {
  int64_t heard_ms = now_ms(), allowed_ms = staging->timings.first_answer_ms;
  char* job = NULL;  // it is requested once, and again only from a restarted daemon
  Outcome outcome = OutcomeGone;
  for (bool noted = false; outcome == OutcomeGone || outcome == OutcomeLost;) {
    const Wait wait = wait_for_ms(RequestMs, staging->wake_fd);
    if (job == NULL)
      job = request_staging(&staging->daemon, &staging->names, &staging->job, false, &wait, failure);
    const int64_t before_ms = heard_ms;
    outcome = job == NULL ? outcome_of(failure) : follow(staging, job, report, &heard_ms, staged, failure);
    if (job != NULL) allowed_ms = staging->timings.reconnect_ms;
    if (outcome == OutcomeGone) {
      free(job);
      job = NULL;
    } else if (outcome == OutcomeLost && now_ms() - heard_ms >= allowed_ms) {
      outcome = OutcomeFailed;
    } else if (outcome == OutcomeLost) {
      if (!noted || heard_ms != before_ms)
        report_note(report, "%s; trying again for %d s", failure->what, (int)(allowed_ms / 1000));
      noted = true;
      const Wait pause = wait_for_ms(allowed_ms, staging->wake_fd);
      (void)pause_for_ms(staging->timings.retry_ms, &pause);  // a cancellation ends the next call
    }
  }
  free(job);
  if (outcome != OutcomeStaged) return -1;
  if (!has_live(staged)) report_end(report);
  for (size_t at = 0; at < staged->count; ++at) {
    const char* name = staging->names.names[at < staging->names.count ? at : 0];
    const char* why = staged_text(staged, at, "unchecked");
    if (why != NULL)
      report_note(report, "warning: the copy of %s was not compared with its source: %s", name, why);
    if (is_live(staged, at)) report_note(report, "%s is live: reads of what is missing wait", name);
  }
  return 0;
}
