// HTTP/1.1 over the daemon's Unix socket: one request a connection, an answer at once or line by line.
#ifndef SPARK_SLURM_HTTP_H
#define SPARK_SLURM_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "slurm/wait.h"

typedef struct HttpRequest {
  const char* socket;
  const char* method;
  const char* target;
  const char* body;  // NULL: none
} HttpRequest;

typedef struct HttpAnswer {
  int fd;
  int status;
  bool chunked;
  size_t left;  // bytes of the body, or of the current chunk, that are still to come
  bool ended;
  size_t begin, end;  // what of the buffer was received and not taken yet
  char buffer[16384];
} HttpAnswer;

// All return -1 with errno on failure: ETIMEDOUT, ECANCELED, EPROTO for an answer that is no HTTP, or what
// the socket said.

// Sends, and reads up to the body. After success the answer has to be closed.
int http_send(HttpAnswer* answer, const HttpRequest* request, const Wait* wait);
// 1: *line is the next line, without its end, owned by the caller; 0: the answer is over.
int http_line(HttpAnswer* answer, char** line, const Wait* wait);
// The whole rest, with a final zero, owned by the caller; NULL on failure.
char* http_body(HttpAnswer* answer, const Wait* wait);
void http_close(HttpAnswer* answer);

#endif
