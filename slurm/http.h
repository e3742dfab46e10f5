// HTTP/1.1 over the daemon's Unix socket: one request per connection; the answer is read as a whole or line
// by line.
#ifndef SPARK_SLURM_HTTP_H
#define SPARK_SLURM_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "slurm/wait.h"

typedef struct HttpRequest {
  const char* socket;
  const char* method;
  const char* target;
  const char* body;  // NULL: no body
} HttpRequest;

typedef struct HttpAnswer {
  int fd;
  int status;
  bool chunked;
  size_t left;  // remaining bytes of the body, or of the current chunk
  bool ended;
  size_t begin, end;  // range of the buffer that was received and not consumed
  char buffer[16384];
} HttpAnswer;

// All return -1 with errno on failure: ETIMEDOUT, ECANCELED, EPROTO if the answer is not HTTP, or the
// socket's error.

// Sends the request, and reads the answer up to its body. After success the caller must close the answer.
int http_send(HttpAnswer* answer, const HttpRequest* request, const Wait* wait);
// 1: *line is the next line without its line end, owned by the caller; 0: end of the answer.
int http_line(HttpAnswer* answer, char** line, const Wait* wait);
// The rest of the body with a terminating zero, owned by the caller; NULL on failure.
char* http_body(HttpAnswer* answer, const Wait* wait);
void http_close(HttpAnswer* answer);

#endif
